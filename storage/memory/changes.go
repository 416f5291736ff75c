package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// admit returns why the change can't commit, or nil. Call it before changing anything.
// That an idempotency key is taken comes before every other error. The caller holds s.mu.
func (s *Store) admit(change *formsvc.Change) error {
	if r := change.Idempotency; r != nil {
		if err := checkRecord(r); err != nil {
			return err
		}
		if s.records[recordKey{r.AccountID, r.Key}] != nil {
			return formsvc.ErrRepeated
		}
	}
	if a := change.Audit; a != nil {
		if err := checkAudit(a); err != nil {
			return err
		}
		if s.audited[a.ID] {
			return formsvc.ErrConflict
		}
	}
	return s.checkEvents(change.Events)
}

// apply writes an admitted change. The caller holds s.mu.
func (s *Store) apply(change *formsvc.Change) {
	if r := change.Idempotency; r != nil {
		s.remember(r)
	}
	if a := change.Audit; a != nil {
		s.append(a)
	}
	s.raise(change.Events)
}

// write decides a change, and makes it with what do does, if admit allows it. If do fails, it changes nothing.
func (s *Store) write(ctx context.Context, decide func() (formsvc.Change, error), do func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	change, err := decide()
	if err == nil {
		err = s.admit(&change)
	}
	if err == nil {
		err = do()
	}
	if err == nil {
		s.apply(&change)
	}
	return err
}

// decided runs a decide function; nil returns an empty change.
func decided[T any](of T, decide func(T) (formsvc.Change, error)) (formsvc.Change, error) {
	if decide == nil {
		return formsvc.Change{}, nil
	}
	return decide(of)
}

// A recordKey names an idempotency record.
type recordKey struct {
	account formsvc.ID
	key     string
}

func (s *Store) remember(r *formsvc.IdempotencyRecord) {
	s.records[recordKey{r.AccountID, r.Key}] = new(copyRecord(r))
}

// Recall implements [formsvc.Store].
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

func checkRecord(r *formsvc.IdempotencyRecord) error {
	return formsvc.CheckText(string(r.AccountID), r.Key, string(r.ResponseID))
}

func copyRecord(record *formsvc.IdempotencyRecord) formsvc.IdempotencyRecord {
	r := *record
	r.Result, r.CreatedAt = bytes.Clone(r.Result), kept(r.CreatedAt)
	if r.Response != nil {
		r.Response = new(copyResponse(r.Response))
	}
	return r
}

// A quotaWindow identifies the window of a subject that begins at start, in microseconds.
type quotaWindow struct {
	subject formsvc.ID
	start   int64
}

// AddQuota implements [formsvc.Store].
func (s *Store) AddQuota(ctx context.Context, list []formsvc.QuotaCount) ([]int, error) {
	for _, c := range list {
		if !c.Subject.Valid() {
			return nil, formsvc.ErrNotFound
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.quota == nil {
		s.quota = make(map[quotaWindow]int)
	}
	used := make([]int, len(list))
	for i, c := range list {
		w := quotaWindow{c.Subject, c.Start.UnixMicro()}
		s.quota[w] += c.N
		used[i] = s.quota[w]
	}
	return used, nil
}

// QuotaUse implements [formsvc.Store].
func (s *Store) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []formsvc.QuotaUse
	for w, used := range s.quota {
		if w.subject == subject && w.start >= since.UnixMicro() && used > 0 {
			list = append(list, formsvc.QuotaUse{Start: time.UnixMicro(w.start).UTC(), Used: used})
		}
	}
	slices.SortFunc(list, func(a, b formsvc.QuotaUse) int { return a.Start.Compare(b.Start) })
	return list, nil
}
