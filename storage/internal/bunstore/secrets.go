package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
)

// Sealed has the sealed values of a webhook; "" stands for a missing one.
type Sealed struct{ Secret, PreviousSecret, Headers string }

// The columns of sealed values. A value is bound to its column, the table and the
// webhook's identifier.
const (
	secretColumn   = "secret"
	previousColumn = "previous_secret"
	headersColumn  = "headers"
)

// sealedHeader is the stored form of a header.
type sealedHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (s *Store) seal(w *formsvc.Webhook) (v Sealed, err error) {
	headers := ""
	if len(w.Headers) > 0 {
		list := make([]sealedHeader, len(w.Headers))
		for i, h := range w.Headers {
			list[i] = sealedHeader(h)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return v, fmt.Errorf("bunstore: headers: %w", err)
		}
		headers = string(text)
	}
	id := string(w.ID)
	return Sealed{
		s.sealOne(w.Secret, secretColumn, id), s.sealOne(w.Previous, previousColumn, id), s.sealOne(headers, headersColumn, id),
	}, nil
}

func (s *Store) sealOne(plain, column, webhook string) string {
	if plain == "" {
		return ""
	}
	return s.keys.Seal(plain, "formsvc_webhooks", column, webhook)
}

func (s *Store) openOne(sealed, column, webhook string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	plain, err := s.keys.Open(sealed, "formsvc_webhooks", column, webhook)
	if err != nil {
		return "", fmt.Errorf("bunstore: %s of webhook %s: %w", column, webhook, err)
	}
	return plain, nil
}

// open returns the plain values. One that can't be opened is left empty, and err says why.
func (s *Store) open(webhook ID, v *Sealed) (secret, previous string, headers []formsvc.Header, err error) {
	id := string(webhook)
	secret, secretErr := s.openOne(v.Secret, secretColumn, id)
	previous, previousErr := s.openOne(v.PreviousSecret, previousColumn, id)
	text, headersErr := s.openOne(v.Headers, headersColumn, id)
	var list []sealedHeader
	if text != "" && json.Unmarshal([]byte(text), &list) != nil { // json's error would quote the text
		headersErr = fmt.Errorf("bunstore: %s of webhook %s: not in the stored form", headersColumn, id)
	}
	for _, h := range list {
		headers = append(headers, formsvc.Header(h))
	}
	return secret, previous, headers, errors.Join(secretErr, previousErr, headersErr)
}

// httpHeaders returns headers as an http.Header.
func httpHeaders(list []formsvc.Header) http.Header {
	if len(list) == 0 {
		return nil
	}
	headers := make(http.Header, len(list))
	for _, h := range list {
		headers.Add(h.Name, h.Value)
	}
	return headers
}

// usedKeys returns the ids of the keys that values are sealed under.
const usedKeys = "SELECT DISTINCT substr(x.value, 1, 12) FROM (SELECT secret AS value FROM formsvc_webhooks" +
	" UNION ALL SELECT previous_secret FROM formsvc_webhooks UNION ALL SELECT headers FROM formsvc_webhooks) AS x" +
	" WHERE x.value LIKE 's1.%'"

// CheckKeys implements storage.Database.
func (s *Store) CheckKeys(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	values, err := List(ctx, s.read, func(rows *sql.Rows, s *string) error { return rows.Scan(s) }, usedKeys)
	if err != nil {
		return s.backend.Classify(err)
	}
	var missing []string
	for _, value := range values {
		if id, err := keyring.KeyID(value); err == nil && !slices.Contains(s.keys.IDs(), id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("%w: %s: the database has secrets sealed under it", keyring.ErrUnknownKey, strings.Join(missing, ", "))
	}
	return nil
}

// rotateBatch is the number of webhooks that are read, and written, at once.
const rotateBatch = 200

// RotateSecrets implements storage.Database. It is one transaction, so that no value under
// another key is written meanwhile.
func (s *Store) RotateSecrets(ctx context.Context) (changed int, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if s.keys.Primary() == "" {
		return 0, errors.New("rotate secrets: there is no key to seal with")
	}
	var unread error
	err = s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) (err error) {
		changed, unread, err = s.sealAnew(ctx, c)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("rotate secrets: %w", err)
	}
	if unread != nil {
		return changed, fmt.Errorf("rotate secrets: %w", unread)
	}
	return changed, nil
}

// A sealedRow has the sealed values of a webhook. The types are those of its columns.
type sealedRow struct {
	ID ID `bun:"type:uuid"`
	Sealed
}

// sealAnew seals the values of all webhooks that need it. unread is the error of a value
// that couldn't be opened, if any.
func (s *Store) sealAnew(ctx context.Context, c bun.IConn) (changed int, unread, err error) {
	if s.dialect.ManyWriters {
		// The lock waits for open transactions, perhaps of hosts, that have sealed values.
		if _, err := c.ExecContext(ctx, "LOCK TABLE formsvc_webhooks IN EXCLUSIVE MODE"); err != nil {
			return 0, nil, err
		}
	}
	for after := ID("00000000-0000-0000-0000-000000000000"); ; {
		var rows, fresh []sealedRow
		err := s.build.NewSelect().Conn(c).TableExpr("formsvc_webhooks").Column("id", "secret", "previous_secret", "headers").
			Where("id > ?", after).Order("id").Limit(rotateBatch).Scan(ctx, &rows)
		if err != nil || len(rows) == 0 {
			return changed, unread, err
		}
		after = rows[len(rows)-1].ID
		for _, r := range rows {
			before := r.Sealed
			unread = cmp.Or(unread, s.reseal(&r)) // one error is enough to say what is wrong
			if r.Sealed != before {
				fresh = append(fresh, r)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		if _, err := s.build.NewUpdate().Conn(c).With("v", s.build.NewValues(&fresh)).TableExpr("formsvc_webhooks AS w").TableExpr("v").
			Set("secret = v.secret, previous_secret = v.previous_secret, headers = v.headers").Where("w.id = v.id").Exec(ctx); err != nil {
			return changed, unread, err
		}
		changed += len(fresh)
	}
}

// reseal seals the values under the first key. Those that can't be opened stay
// as they are, and unread says why.
func (s *Store) reseal(r *sealedRow) (unread error) {
	for column, text := range map[string]*string{
		secretColumn: &r.Secret, previousColumn: &r.PreviousSecret, headersColumn: &r.Headers,
	} {
		if s.underPrimary(*text) {
			continue
		}
		plain, err := s.openOne(*text, column, string(r.ID))
		if err != nil {
			unread = err
			continue
		}
		*text = s.sealOne(plain, column, string(r.ID))
	}
	return unread
}

func (s *Store) underPrimary(text string) bool {
	id, err := keyring.KeyID(text)
	return text == "" || err == nil && id == s.keys.Primary()
}
