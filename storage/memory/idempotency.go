package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A recordKey names an idempotency record.
type recordKey struct {
	account formsvc.ID
	key     string
}

func (s *Store) remember(r *formsvc.IdempotencyRecord) {
	s.records[recordKey{r.AccountID, r.Key}] = new(copyRecord(r))
}

// Remember implements [formsvc.IdempotencyStore].
func (s *Store) Remember(ctx context.Context, r formsvc.IdempotencyRecord) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	change := formsvc.Change{Idempotency: &r}
	if err := s.admit(&change); err != nil {
		return err
	}
	s.apply(&change)
	return nil
}

// Recall implements [formsvc.IdempotencyStore].
func (s *Store) Recall(ctx context.Context, account formsvc.ID, key string, since time.Time) (formsvc.IdempotencyRecord, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.IdempotencyRecord{}, err
	}
	defer s.mu.Unlock()
	r := s.records[recordKey{account, key}]
	if r != nil && r.CreatedAt.Before(since) {
		delete(s.records, recordKey{account, key})
		r = nil
	}
	if r == nil {
		return formsvc.IdempotencyRecord{}, formsvc.ErrNotFound
	}
	return copyRecord(r), nil
}

// Forget implements [formsvc.IdempotencyStore].
func (s *Store) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	var old []recordKey
	for key, r := range s.records {
		if r.CreatedAt.Before(before) {
			old = append(old, key)
		}
	}
	slices.SortFunc(old, func(a, b recordKey) int { return s.records[a].CreatedAt.Compare(s.records[b].CreatedAt) })
	old = old[:min(len(old), max(limit, 0))]
	for _, key := range old {
		delete(s.records, key)
	}
	return len(old), nil
}

func checkRecord(r *formsvc.IdempotencyRecord) error {
	return formsvc.CheckText(string(r.AccountID), r.Key, r.ETag, r.Location, string(r.ResponseID))
}

func copyRecord(record *formsvc.IdempotencyRecord) formsvc.IdempotencyRecord {
	r := *record
	r.Body, r.CreatedAt = bytes.Clone(r.Body), kept(r.CreatedAt)
	return r
}
