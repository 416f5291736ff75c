package memory

import (
	"context"

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

// write makes a change with what do does, if check and admit allow it. If do fails, it
// changes nothing.
func (s *Store) write(ctx context.Context, change *formsvc.Change, check, do func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := check(); err != nil {
		return err
	}
	if err := s.admit(change); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	s.apply(change)
	return nil
}

// decided runs a decide function; nil returns an empty change.
func decided[T any](of T, decide func(T) (formsvc.Change, error)) (formsvc.Change, error) {
	if decide == nil {
		return formsvc.Change{}, nil
	}
	return decide(of)
}
