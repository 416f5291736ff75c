package bunstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// responseColumns are the columns of a response except the identifiers that the query
// selects by, in the order of scanResponse.
const responseColumns = "id, reference, status, email, first_name, last_name, answers, version, " +
	"created_at, updated_at, completed_at, held"

type scanner interface{ Scan(dest ...any) error }

// scanResponse reads responseColumns into r, and the columns after them into more.
func scanResponse(row scanner, r *formsvc.Response, more ...any) error {
	var (
		answers                     string
		created, updated, completed int64
	)
	if err := row.Scan(append([]any{(*ID)(&r.ID), &r.Reference, &r.Status, &r.User.Email, &r.User.FirstName,
		&r.User.LastName, &answers, &r.Version, &created, &updated, &completed, &r.Held}, more...)...); err != nil {
		return err
	}
	r.Answers = formsvc.StoredAnswers(answers)
	r.CreatedAt, r.UpdatedAt, r.CompletedAt = fromMicros(created), fromMicros(updated), fromMicros(completed)
	return nil
}

// Person returns what the responses of a campaign by an email address have in common, however it is written: a hash, so
// that the index of it is small. It is nil without an address.
func Person(campaign formsvc.ID, email string) *int64 {
	if email == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(string(campaign) + formsvc.FoldEmail(email)))
	return new(int64(binary.BigEndian.Uint64(sum[:]))) //nolint:gosec // any number
}

func checkResponse(r *formsvc.Response, change *formsvc.Change) error {
	if err := checkChange(change); err != nil {
		return err
	}
	return formsvc.CheckText(r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(), string(r.Held))
}

// CreateResponse implements formsvc.ResponseStore.
func (s *Store) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) error {
	if err := cmp.Or(s.ready(ctx, r.AccountID, r.CampaignID), checkIDs(r.ID), checkResponse(&r, &change)); err != nil {
		return err
	}
	creation := &Creation{Response: r, CampaignVersion: campaignVersion, Change: change}
	if change.Audit == nil {
		return s.submit(ctx, &Unit{Creation: creation})
	}
	// Groups have no statement for audit entries, which creating a response normally
	// doesn't write.
	return s.write(ctx, func(ctx context.Context, c bun.IConn) (bool, error) {
		wake, err := s.config.createAlone(ctx, c, creation)
		if err == nil {
			err = s.appendAudit(ctx, c, change.Audit)
		}
		return wake, err
	})
}

const (
	selectResponse = "SELECT " + responseColumns + " FROM formsvc_responses AS r" +
		" WHERE r.campaign_id = $1 AND r.id = $2 AND r.account_id = $3"
	updateResponse = "UPDATE formsvc_responses SET status = $1, email = $2, first_name = $3, last_name = $4, " +
		"answers = $5, version = $6, updated_at = $7, completed_at = $8, person = $9, held = $10 WHERE campaign_id = $11 AND id = $12"
	touchResponse = "UPDATE formsvc_responses SET version = version" +
		" WHERE campaign_id = $1 AND id = $2 AND account_id = $3 RETURNING " + responseColumns
)

// Response implements formsvc.ResponseStore.
func (s *Store) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return formsvc.Response{}, err
	}
	return s.response(ctx, s.read, key, selectResponse)
}

func (s *Store) response(
	ctx context.Context, c bun.IConn, key formsvc.ResponseKey, statement string,
) (formsvc.Response, error) {
	r := formsvc.Response{AccountID: key.AccountID, CampaignID: key.CampaignID}
	row := c.QueryRowContext(ctx, statement, s.dialect.arg(key.CampaignID), s.dialect.arg(key.ID), s.dialect.arg(key.AccountID))
	return r, s.notFound(scanResponse(row, &r))
}

// lockedResponse returns a response and locks it against changes and deletion until the
// transaction of c ends.
func (s *Store) lockedResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) (formsvc.Response, error) {
	statement := selectResponse
	if s.dialect.ManyWriters {
		statement += " FOR UPDATE"
	}
	return s.response(ctx, c, key, statement)
}

// touchedResponse is lockedResponse for a transaction that raises events about the
// response and leaves it unchanged. It writes the row, so that a transaction with an older
// snapshot (REPEATABLE READ on Postgres) can no longer change the response: its events
// would come before those of this one.
func (s *Store) touchedResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) (formsvc.Response, error) {
	return s.response(ctx, c, key, touchResponse)
}

// UpdateResponse implements formsvc.ResponseStore.
func (s *Store) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	var r formsvc.Response
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return r, err
	}
	err := s.write(ctx, func(ctx context.Context, c bun.IConn) (bool, error) {
		var err error
		if r, err = s.lockedResponse(ctx, c, key); err != nil {
			return false, err
		}
		before := r
		change, err := decide(&r)
		if err != nil || r.Version == before.Version {
			r = before
			return false, err
		}
		if change.PerFile != nil {
			files, err := s.filesOf(ctx, c, key)
			if err != nil {
				return false, err
			}
			change.AddPerFile(files)
		}
		if err := checkResponse(&r, &change); err != nil {
			return false, err
		}
		if before.Version == 1 {
			if err := s.keepResult(ctx, c, &before); err != nil {
				return false, err
			}
		}
		if _, err := c.ExecContext(ctx, updateResponse,
			r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(), r.Version,
			micros(r.UpdatedAt), micros(r.CompletedAt), Person(r.CampaignID, r.User.Email), r.Held, s.dialect.arg(key.CampaignID), s.dialect.arg(key.ID)); err != nil {
			return false, err
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
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return nil, err
	}
	var files []formsvc.ID
	err := s.write(ctx, func(ctx context.Context, c bun.IConn) (wake bool, err error) {
		r, err := s.lockedResponse(ctx, c, key)
		if err != nil {
			return false, err
		}
		if _, _, files, err = s.dropResponses(ctx, c, ID(key.AccountID), ID(key.CampaignID), []ID{ID(key.ID)}); err != nil {
			return false, err
		}
		if err := s.emptyResults(ctx, c, ID(key.AccountID), []ID{ID(key.ID)}); err != nil {
			return false, err
		}
		if wake, err = decided(ctx, s, c, &r, decide); err == nil {
			err = s.addCount(ctx, c, key.CampaignID, -1)
		}
		return wake, err
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
