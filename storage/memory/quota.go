package memory

import (
	"context"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

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
	return locked(ctx, s, func() ([]int, error) {
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
	})
}

// QuotaUse implements [formsvc.Store].
func (s *Store) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	return locked(ctx, s, func() ([]formsvc.QuotaUse, error) {
		var list []formsvc.QuotaUse
		for w, used := range s.quota {
			if w.subject == subject && w.start >= since.UnixMicro() && used > 0 {
				list = append(list, formsvc.QuotaUse{Start: time.UnixMicro(w.start).UTC(), Used: used})
			}
		}
		slices.SortFunc(list, func(a, b formsvc.QuotaUse) int { return a.Start.Compare(b.Start) })
		return list, nil
	})
}
