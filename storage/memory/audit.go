package memory

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

// Commit implements [formsvc.Store].
func (s *Store) Commit(ctx context.Context, change formsvc.Change) error {
	return s.write(ctx, func() (formsvc.Change, error) {
		if a := change.Audit; a != nil {
			if _, err := s.account(a.AccountID); err != nil {
				return change, err
			}
		}
		if r := change.Idempotency; r != nil {
			if _, err := s.account(r.AccountID); err != nil {
				return change, err
			}
		}
		if len(change.Events) > 0 {
			return change, fmt.Errorf("memory: the events belong to no record: %w", formsvc.ErrInvalid)
		}
		return change, nil
	}, func() error { return nil })
}

// Audit implements [formsvc.Store].
func (s *Store) Audit(ctx context.Context, q formsvc.AuditQuery) (formsvc.Page[formsvc.AuditEntry], error) {
	match := func(e *formsvc.AuditEntry) bool {
		return e.AccountID == q.AccountID && (q.Action == "" || e.Action == q.Action) && (q.Target == "" || e.Target == q.Target) &&
			!e.CreatedAt.Before(q.Since)
	}
	return locked(ctx, s, func() (formsvc.Page[formsvc.AuditEntry], error) {
		return page(&s.audit, q.Page, false, match, copyOf), nil
	})
}
