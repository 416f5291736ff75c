package bunstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/keyring"
)

const (
	// rotateBatch is the number of webhooks per transaction: few enough that others don't
	// wait for long.
	rotateBatch = 50
	// rotatePasses is how often RotateSecrets starts again if others write values under
	// other keys meanwhile.
	rotatePasses = 10
)

// errNotRotated means that some values are still under other keys.
var errNotRotated = errors.New("values were sealed under other keys meanwhile; put the same key first in every process")

// RotateSecrets implements storage.Database.
func (s *Store) RotateSecrets(ctx context.Context) (changed int, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if s.keys.Primary() == "" {
		return 0, errors.New("rotate secrets: there is no key to seal with")
	}
	for range rotatePasses {
		n, err := s.sealAnew(ctx)
		changed += n
		if err != nil {
			return changed, fmt.Errorf("rotate secrets: %w", err)
		}
		err = s.unit(ctx, s.checkRotated)
		if err == nil {
			return changed, nil
		}
		if !errors.Is(err, errNotRotated) {
			return changed, fmt.Errorf("rotate secrets: %w", err)
		}
	}
	return changed, fmt.Errorf("rotate secrets: %w", errNotRotated)
}

// sealAnew seals the values of all webhooks once.
func (s *Store) sealAnew(ctx context.Context) (changed int, err error) {
	var unread error
	for after := ID(""); ; {
		rows, err := s.sealedRows(ctx, s.read, after)
		if err != nil {
			return changed, s.backend.Classify(err)
		}
		if len(rows) == 0 {
			return changed, unread
		}
		after = rows[len(rows)-1].ID
		n, closed, err := s.sealBatch(ctx, rows)
		changed += n
		if unread == nil {
			unread = closed // one error is enough to say what is wrong
		}
		if err != nil {
			return changed, err
		}
	}
}

// sealedRows returns the next webhooks by their identifiers, with the columns
// that say what is sealed.
func (s *Store) sealedRows(ctx context.Context, c bun.IConn, after ID) (rows []webhookRow, err error) {
	q := s.build.NewSelect().Conn(c).Model(&rows).Column("id", "secret", "previous_secret", "headers").
		Order("id").Limit(rotateBatch)
	if after != "" {
		q = q.Where("id > ?", after)
	}
	return rows, q.Scan(ctx)
}

// sealBatch seals those values again that need it. unread is the error of a value that
// couldn't be opened, if any.
func (s *Store) sealBatch(ctx context.Context, rows []webhookRow) (changed int, unread, err error) {
	fresh := make(map[int]*secrets)
	for i := range rows {
		v, closed := s.resealed(rows[i].secrets())
		if unread == nil {
			unread = closed
		}
		if *v != *rows[i].secrets() {
			fresh[i] = v
		}
	}
	if len(fresh) == 0 {
		return 0, unread, nil
	}
	err = s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		changed = 0
		for i, v := range fresh {
			old := rows[i].secrets()
			// If a value has changed since it was read, keep the new one.
			result, err := s.build.NewUpdate().Conn(c).Table("formsvc_webhooks").
				Set("secret = ?, previous_secret = ?, headers = ?", v.secret, v.previous, v.headers).
				Where("id = ? AND secret = ? AND previous_secret = ? AND headers = ?", ID(old.webhook), old.secret, old.previous, old.headers).
				Exec(ctx)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			changed += int(n)
		}
		return nil
	})
	if err != nil {
		changed = 0
	}
	return changed, unread, err
}

// resealed returns the values sealed under the first key. Those that can't be opened stay
// as they are, and unread says why.
func (s *Store) resealed(v *secrets) (_ *secrets, unread error) {
	fresh := *v
	for column, text := range map[string]*string{
		secretColumn: &fresh.secret, previousColumn: &fresh.previous, headersColumn: &fresh.headers,
	} {
		if s.underPrimary(*text) {
			continue
		}
		plain, err := s.openOne(*text, column, v.webhook)
		if err != nil {
			unread = err
			continue
		}
		*text = s.sealOne(plain, column, v.webhook)
	}
	return &fresh, unread
}

func (s *Store) underPrimary(text string) bool {
	id, err := keyring.KeyID(text)
	return text == "" || err == nil && id == s.keys.Primary()
}

// checkRotated fails with errNotRotated if a value is sealed under another key.
func (s *Store) checkRotated(ctx context.Context, c bun.IConn) error {
	if s.dialect.ManyWriters {
		// The lock waits for open transactions, perhaps of hosts, that have sealed values.
		if _, err := c.ExecContext(ctx, "LOCK TABLE formsvc_webhooks IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	for after := ID(""); ; {
		rows, err := s.sealedRows(ctx, c, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			for _, text := range rows[i].secrets().texts() {
				if !s.underPrimary(text) {
					return errNotRotated
				}
			}
		}
		after = rows[len(rows)-1].ID
	}
}
