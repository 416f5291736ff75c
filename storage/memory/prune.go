package memory

import (
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// PruneEvents implements [formsvc.Store]. Of deleted webhooks only notices are left,
// which are deleted with their events.
func (s *Store) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return locked(ctx, s, func() (rows int, err error) {
		events := 0
		for _, id := range s.accounts.ids {
			a := s.accounts.rows[id]
			a.events = slices.DeleteFunc(a.events, func(e *event) bool {
				if events >= limit || !e.CreatedAt.Before(before) {
					return false
				}
				events++
				rows += s.forget(e)
				return true
			})
		}
		return rows, nil
	})
}

// PruneQuota implements [formsvc.Store].
func (s *Store) PruneQuota(ctx context.Context, before time.Time, limit int) (int, error) {
	return locked(ctx, s, func() (n int, err error) {
		for w := range s.quota {
			if n < limit && w.start < before.UnixMicro() {
				delete(s.quota, w)
				n++
			}
		}
		return n, nil
	})
}

// PruneSessions implements [formsvc.Store].
func (s *Store) PruneSessions(ctx context.Context, before time.Time, limit int) (int, error) {
	return locked(ctx, s, func() (int, error) {
		return pruneTable(&s.links, limit, func(l *formsvc.Link) bool { return l.ExpiresAt.Before(before) }) +
			pruneTable(&s.sessions, limit, func(x *formsvc.Session) bool { return x.ExpiresAt.Before(before) }), nil
	})
}

// PruneIdempotency implements [formsvc.Store].
func (s *Store) PruneIdempotency(ctx context.Context, before time.Time, limit int) (int, error) {
	return locked(ctx, s, func() (int, error) {
		var old []recordKey
		for key, r := range s.records {
			if r.CreatedAt.Before(before) && !s.unchanged(r) {
				old = append(old, key)
			}
		}
		slices.SortFunc(old, func(a, b recordKey) int { return s.records[a].CreatedAt.Compare(s.records[b].CreatedAt) })
		old = old[:min(len(old), max(limit, 0))]
		for _, key := range old {
			delete(s.records, key)
		}
		return len(old), nil
	})
}

// pruneTable deletes up to limit old rows, and returns how many.
func pruneTable[R any](t *table[R], limit int, old func(R) bool) (n int) {
	for id, row := range t.rows {
		if n < limit && old(row) {
			t.remove(id)
			n++
		}
	}
	return n
}

// Scrub implements [formsvc.Store]. The store keeps nothing of removed
// records.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}

// Notify implements [formsvc.Store].
func (s *Store) Notify() { s.wakeUp() }
