package memory

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

// admit returns why the change can't commit, or nil. Call it before changing anything.
// That an idempotency key is taken comes before every other error. The caller holds s.mu.
func (s *Store) admit(change *formsvc.Change) error {
	if r := change.Idempotency; r != nil {
		if _, err := stored(r); err != nil {
			return err
		}
		if s.records[recordKey{r.AccountID, r.Key}] != nil {
			return formsvc.ErrRepeated
		}
	}
	if a := change.Audit; a != nil {
		if _, err := stored(a); err != nil {
			return err
		}
		if s.audit.rows[a.ID] != nil {
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
		_ = s.audit.add(a.ID, new(copyOf(a))) // admit has checked that the ID is new
	}
	if n := change.Recount; n != nil {
		for _, r := range s.campaigns.rows[n.Campaign.ID].responses.rows {
			r.places = n.Places(new(r.Response))
		}
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
