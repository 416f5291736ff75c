package memory

import (
	"context"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

func (s *Store) append(a *formsvc.AuditEntry) {
	s.audited[a.ID] = true
	if row, err := s.account(a.AccountID); err == nil { // the account may be created in the same change
		_ = row.audit.add(a.ID, new(copyOf(a))) // admit has checked that the ID is new
	}
}

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
		return (q.Action == "" || e.Action == q.Action) && (q.Target == "" || e.Target == q.Target) &&
			!e.CreatedAt.Before(q.Since)
	}
	return read(ctx, s, s.accountOrNone, q.AccountID, func(a *account) formsvc.Page[formsvc.AuditEntry] {
		return page(&a.audit, q.Page, false, match, copyOf)
	})
}
