package memory

import (
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Prune implements [formsvc.MaintenanceStore]. Of deleted webhooks only notices are left,
// which are deleted with their events.
func (s *Store) Prune(ctx context.Context, what formsvc.Prunable, before time.Time, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	switch what {
	case formsvc.PruneEvents:
		return s.pruneEvents(before, limit), nil
	case formsvc.PruneIdempotency:
		return s.pruneRecords(before, limit), nil
	case formsvc.PruneQuota:
		return pruneMap(s.quota, limit, func(w quotaWindow, _ int) bool { return w.start < before.UnixMicro() }), nil
	case formsvc.PruneSessions:
		return pruneTable(&s.links, limit, func(l *formsvc.Link) bool { return l.ExpiresAt.Before(before) }) +
			pruneTable(&s.sessions, limit, func(x *formsvc.Session) bool { return x.ExpiresAt.Before(before) }), nil
	}
	return 0, formsvc.ErrInvalid
}

func (s *Store) pruneEvents(before time.Time, limit int) int {
	events, rows := 0, 0
	for _, id := range s.accounts.ids {
		a := s.accounts.rows[id]
		a.events = slices.DeleteFunc(a.events, func(e *event) bool {
			if events >= limit || !e.CreatedAt.Before(before) {
				return false
			}
			events++
			rows += s.forget(a, e)
			return true
		})
	}
	return rows
}

func (s *Store) pruneRecords(before time.Time, limit int) int {
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
	return len(old)
}

// pruneMap deletes up to limit old entries, and returns how many.
func pruneMap[K comparable, V any](m map[K]V, limit int, old func(K, V) bool) (n int) {
	for key, value := range m {
		if n < limit && old(key, value) {
			delete(m, key)
			n++
		}
	}
	return n
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

// Scrub implements [formsvc.MaintenanceStore]. The store keeps nothing of removed
// records.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}

// Notify implements [formsvc.MaintenanceStore].
func (s *Store) Notify() { s.wakeUp() }
