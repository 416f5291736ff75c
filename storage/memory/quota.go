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

// TakeQuota implements [formsvc.QuotaStore].
func (s *Store) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	if err := s.enter(ctx); err != nil {
		return formsvc.QuotaGrant{}, err
	}
	defer s.mu.Unlock()
	start := formsvc.QuotaStart(q.Now, q.Window)
	w := quotaWindow{q.Subject, start.UnixMicro()}
	left := max(q.Limit-s.quota[w], 0)
	granted := min(q.Need, left)
	granted += min(q.Spare, (left-granted)/formsvc.QuotaShare)
	if s.quota == nil {
		s.quota = make(map[quotaWindow]int)
	}
	s.quota[w] += granted
	return formsvc.QuotaGrant{Granted: granted, Left: left - granted, Start: start, Ends: start.Add(q.Window).Sub(q.Now)}, nil
}

// ReturnQuota implements [formsvc.QuotaStore].
func (s *Store) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, r := range list {
		w := quotaWindow{r.Subject, r.Start.UnixMicro()}
		if used, ok := s.quota[w]; ok {
			s.quota[w] = max(used-r.N, 0)
		}
	}
	return nil
}

// QuotaUse implements [formsvc.QuotaStore].
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
