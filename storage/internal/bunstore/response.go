package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

type scanner interface{ Scan(dest ...any) error }

// scanResponse reads responseColumns into r, and the columns after them into more. The query knows the account and the
// campaign.
func scanResponse(row scanner, r *formsvc.Response, more ...any) error {
	into := make([]any, 0, len(responseFields)+len(more))
	for i := range responseFields {
		if to := responseFields[i].scan; to != nil {
			into = append(into, to(r))
		}
	}
	err := row.Scan(append(into, more...)...)
	if r.Metadata == "{}" {
		r.Metadata = ""
	}
	return err
}

// responseSQL has the statements about responses, which are built once.
type responseSQL struct {
	columns string // that scanResponse reads
	get     string // by campaign, identifier and account
	touch   string // the same, writing the row
	update  string // changes what isn't fixed, by campaign and identifier
}

// newResponseSQL returns the statements, which are built once.
var newResponseSQL = sync.OnceValue(func() responseSQL { //nolint:gochecknoglobals // immutable
	var read, set []string
	for i := range responseFields {
		f := &responseFields[i]
		if f.scan != nil {
			read = append(read, f.name)
		}
		if !f.fixed {
			set = append(set, fmt.Sprintf("%s = $%d", f.name, len(set)+1))
		}
	}
	columns, n := strings.Join(read, ", "), len(set)
	const one = " WHERE campaign_id = $1 AND id = $2 AND account_id = $3"
	return responseSQL{
		columns: columns,
		get:     "SELECT " + columns + " FROM formsvc_responses" + one,
		touch:   "UPDATE formsvc_responses SET version = version" + one + " RETURNING " + columns,
		update: "UPDATE formsvc_responses SET " + strings.Join(set, ", ") +
			fmt.Sprintf(" WHERE campaign_id = $%d AND id = $%d", n+1, n+2),
	}
})

// changedArgs returns the arguments of responseSQL.update.
func (s *Store) changedArgs(r *formsvc.Response) (args []any) {
	n := &Creation{Response: *r}
	for i := range responseFields {
		if f := &responseFields[i]; !f.fixed {
			args = append(args, f.value(n))
		}
	}
	return append(args, s.dialect.arg(r.CampaignID), s.dialect.arg(r.ID))
}

// person returns what the responses of a campaign by an email address have in common, however it is written: a hash, so
// that the index of it is small. It is nil without an address.
func person(campaign formsvc.ID, email string) any {
	if email == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(string(campaign) + formsvc.FoldEmail(email)))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number
}

func (n *Creation) check() error {
	if err := checkChange(&n.Change); err != nil {
		return err
	}
	for i := range responseFields {
		if f := &responseFields[i]; f.kind == "text" {
			if err := formsvc.CheckText(f.value(n).(string)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CreateResponse implements formsvc.ResponseStore.
func (s *Store) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) error {
	creation := &Creation{Response: r, CampaignVersion: campaignVersion, Change: change}
	if err := cmp.Or(s.ready(ctx, r.AccountID, r.CampaignID), checkIDs(r.ID), creation.check()); err != nil {
		return err
	}
	if change.Audit == nil {
		return s.submit(ctx, &Unit{Creation: creation})
	}
	// Groups have no statement for audit entries, which creating a response normally
	// doesn't write.
	return s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		err := s.config.createAlone(ctx, c, creation)
		if err == nil {
			err = s.appendAudit(ctx, c, change.Audit)
		}
		return err
	})
}

// Response implements formsvc.ResponseStore.
func (s *Store) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return formsvc.Response{}, err
	}
	return s.response(ctx, s.read, key, s.responses.get)
}

func (s *Store) response(
	ctx context.Context, c bun.IConn, key formsvc.ResponseKey, statement string,
) (formsvc.Response, error) {
	r := formsvc.Response{AccountID: key.AccountID, CampaignID: key.CampaignID}
	return r, s.notFound(scanResponse(c.QueryRowContext(ctx, statement, s.keyArgs(key)...), &r))
}

const selectResponseID = "SELECT id FROM formsvc_responses WHERE campaign_id = $1 AND id = $2 AND account_id = $3"

// checkResponse returns formsvc.ErrNotFound if a response doesn't exist. The statement is selectResponseID, perhaps
// with a lock.
func (s *Store) checkResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey, statement string) error {
	return s.notFound(c.QueryRowContext(ctx, statement, s.keyArgs(key)...).Scan(new(ID)))
}

// keyArgs returns the arguments of a statement about a response.
func (s *Store) keyArgs(key formsvc.ResponseKey) []any {
	return []any{s.dialect.arg(key.CampaignID), s.dialect.arg(key.ID), s.dialect.arg(key.AccountID)}
}

// lockedResponse returns a response and locks it against changes and deletion until the
// transaction of c ends.
func (s *Store) lockedResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) (formsvc.Response, error) {
	return s.response(ctx, c, key, s.responses.get+s.lock(""))
}

// touchedResponse is lockedResponse for a transaction that raises events about the
// response and leaves it unchanged. It writes the row, so that a transaction with an older
// snapshot (REPEATABLE READ on Postgres) can no longer change the response: its events
// would come before those of this one.
func (s *Store) touchedResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) (formsvc.Response, error) {
	return s.response(ctx, c, key, s.responses.touch)
}

// UpdateResponse implements formsvc.ResponseStore.
func (s *Store) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	var r formsvc.Response
	err := s.write(ctx, ids(key.AccountID, key.CampaignID, key.ID), nil, func(ctx context.Context, c *Tx) error {
		version, err := s.heldVersion(ctx, c, key.CampaignID)
		if err != nil {
			return err
		}
		if r, err = s.lockedResponse(ctx, c, key); err != nil {
			return err
		}
		before := r
		change, err := decide(&r)
		if err != nil || r.Version == before.Version {
			r = before
			return err
		}
		if change.CampaignVersion != 0 && change.CampaignVersion != version {
			return formsvc.ErrStale
		}
		if change.PerFile != nil {
			files, err := s.filesOf(ctx, c, key)
			if err != nil {
				return err
			}
			change.AddPerFile(files)
		}
		if err := (&Creation{Response: r, Change: change}).check(); err != nil {
			return err
		}
		if err := s.movePlaces(ctx, c, &Creation{Response: r, Change: change}); err != nil {
			return err
		}
		if before.Version == 1 {
			result, err := keptResult(&before)
			if err != nil {
				return err
			}
			if err := s.keepResult(ctx, c, ID(key.CampaignID), []ID{ID(key.ID)}, result); err != nil {
				return err
			}
		}
		if _, err := c.ExecContext(ctx, s.responses.update, s.changedArgs(&r)...); err != nil {
			return err
		}
		return s.apply(ctx, c, &change)
	})
	if err != nil {
		return formsvc.Response{}, err
	}
	r.UpdatedAt, r.CompletedAt = fromMicros(micros(r.UpdatedAt)), fromMicros(micros(r.CompletedAt))
	return r, nil
}

// DeleteResponse implements formsvc.ResponseStore.
func (s *Store) DeleteResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) ([]formsvc.ID, error) {
	var files []formsvc.ID
	err := s.write(ctx, ids(key.AccountID, key.CampaignID, key.ID), nil, func(ctx context.Context, c *Tx) (err error) {
		r, err := s.lockedResponse(ctx, c, key)
		if err != nil {
			return err
		}
		if _, _, files, err = s.dropResponses(ctx, c, ID(key.AccountID), ID(key.CampaignID), []ID{ID(key.ID)}); err != nil {
			return err
		}
		if err := s.emptyResults(ctx, c, ID(key.AccountID), []ID{ID(key.ID)}); err != nil {
			return err
		}
		if err := decided(ctx, s, c, &r, decide); err != nil {
			return err
		}
		return s.addCount(ctx, c, key.CampaignID, -1)
	})
	return files, err
}

// noneWhenNotFound is for lists that are empty if their parent doesn't exist.
func noneWhenNotFound(err error) error {
	if errors.Is(err, formsvc.ErrNotFound) {
		return nil
	}
	return err
}
