package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// checkChange rejects a change that can't be stored.
func checkChange(change *formsvc.Change) error {
	for i := range change.Events {
		if err := checkEvent(&change.Events[i]); err != nil {
			return err
		}
	}
	if a := change.Audit; a != nil {
		if err := checkAudit(a); err != nil {
			return err
		}
	}
	if r := change.Idempotency; r != nil {
		return checkRecord(r)
	}
	return nil
}

// apply writes a change in the transaction of c, and reports whether it left deliveries
// to send.
func (s *Store) apply(ctx context.Context, c bun.IConn, change *formsvc.Change) (wake bool, err error) {
	if r := change.Idempotency; r != nil {
		if err := s.remember(ctx, c, r); err != nil {
			return false, err
		}
	}
	if a := change.Audit; a != nil {
		if err := s.appendAudit(ctx, c, a); err != nil {
			return false, err
		}
	}
	if len(change.Events) == 0 {
		return false, nil
	}
	return s.backend.InsertEvents(ctx, c, change.Events)
}

// changing commits a transaction that runs a function and applies a change.
func (s *Store) changing(
	ctx context.Context, change *formsvc.Change, do func(ctx context.Context, c bun.IConn) error,
) error {
	return s.write(ctx, func(ctx context.Context, c bun.IConn) (wake bool, err error) {
		if err := do(ctx, c); err != nil {
			return false, err
		}
		return s.apply(ctx, c, change)
	})
}

// decided runs a decide function, nil for an empty change, and applies the change it
// returns.
func decided[T any](
	ctx context.Context, s *Store, c bun.IConn, of T, decide func(T) (formsvc.Change, error),
) (wake bool, err error) {
	if decide == nil {
		return false, nil
	}
	change, err := decide(of)
	if err == nil {
		err = checkChange(&change)
	}
	if err != nil {
		return false, err
	}
	return s.apply(ctx, c, &change)
}
