package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A recordKey names an idempotency record.
type recordKey struct {
	account formsvc.ID
	key     string
}

// admit returns why the change can't commit, or nil: a unit asks before it changes
// anything. That a key is taken comes before everything else. The caller holds s.mu.
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

// apply writes a change that was admitted. The caller holds s.mu.
func (s *Store) apply(change *formsvc.Change) {
	if r := change.Idempotency; r != nil {
		s.remember(r)
	}
	if a := change.Audit; a != nil {
		s.append(a)
	}
	s.raise(change.Events)
}

// decided runs a function that decides a unit, nil for an empty change.
func decided[T any](of T, decide func(T) (formsvc.Change, error)) (formsvc.Change, error) {
	if decide == nil {
		return formsvc.Change{}, nil
	}
	return decide(of)
}

func (s *Store) remember(r *formsvc.IdempotencyRecord) {
	s.records[recordKey{r.AccountID, r.Key}] = new(copyRecord(r))
}

func (s *Store) append(a *formsvc.AuditEntry) {
	s.audited[a.ID] = true
	if row, ok := s.accounts.get(a.AccountID); ok { // it may be in the making
		_ = row.audit.add(a.ID, new(copyAudit(a))) // it was looked for
	}
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

// AppendAudit implements [formsvc.AuditStore].
func (s *Store) AppendAudit(ctx context.Context, entry formsvc.AuditEntry) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, err := s.account(entry.AccountID); err != nil {
		return err
	}
	change := formsvc.Change{Audit: &entry}
	if err := s.admit(&change); err != nil {
		return err
	}
	s.apply(&change)
	return nil
}

// Audit implements [formsvc.AuditStore].
func (s *Store) Audit(ctx context.Context, q formsvc.AuditQuery) (formsvc.Page[formsvc.AuditEntry], error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.Page[formsvc.AuditEntry]{}, err
	}
	defer s.mu.Unlock()
	a, err := s.account(q.AccountID)
	if err != nil {
		return formsvc.Page[formsvc.AuditEntry]{}, nil // an unknown account has none
	}
	match := func(e *formsvc.AuditEntry) bool {
		return (q.Action == "" || e.Action == q.Action) && (q.Target == "" || e.Target == q.Target) &&
			!e.CreatedAt.Before(q.Since)
	}
	return page(&a.audit, q.Page, match, copyAudit), nil
}

func checkRecord(r *formsvc.IdempotencyRecord) error {
	return formsvc.CheckText(string(r.AccountID), r.Key, r.ETag, r.Location, string(r.ResponseID))
}

func copyRecord(record *formsvc.IdempotencyRecord) formsvc.IdempotencyRecord {
	r := *record
	r.Body, r.CreatedAt = bytes.Clone(r.Body), kept(r.CreatedAt)
	return r
}

func checkAudit(a *formsvc.AuditEntry) error {
	texts := []string{string(a.ID), string(a.AccountID), a.Actor, string(a.Action), string(a.Target)}
	for name, value := range a.Details {
		texts = append(texts, name, value)
	}
	return formsvc.CheckText(texts...)
}

func copyAudit(entry *formsvc.AuditEntry) formsvc.AuditEntry {
	a := *entry
	a.Details, a.CreatedAt = maps.Clone(a.Details), kept(a.CreatedAt)
	return a
}
