package memory

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A recordKey names an idempotency record.
type recordKey struct {
	account formsvc.ID
	key     string
}

func (s *Store) remember(r *formsvc.IdempotencyRecord) {
	s.records[recordKey{r.AccountID, r.Key}] = new(copyOf(r))
}

// Recall implements [formsvc.Store].
func (s *Store) Recall(ctx context.Context, account formsvc.ID, key string, since time.Time) (formsvc.IdempotencyRecord, error) {
	return locked(ctx, s, func() (formsvc.IdempotencyRecord, error) {
		r := s.records[recordKey{account, key}]
		if r != nil && r.CreatedAt.Before(since) {
			delete(s.records, recordKey{account, key})
			r = nil
		}
		if r == nil {
			return formsvc.IdempotencyRecord{}, formsvc.ErrNotFound
		}
		return copyOf(r), nil
	})
}

// unchanged reports whether the result of a record is a response that still is as it was created.
func (s *Store) unchanged(r *formsvc.IdempotencyRecord) bool {
	if r.Response == nil {
		return false
	}
	row, err := s.response(r.Response.Key())
	return err == nil && row.Version == r.Response.Version
}
