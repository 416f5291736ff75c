package bunstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// AddQuota implements formsvc.QuotaStore.
func (s *Store) AddQuota(ctx context.Context, list []formsvc.QuotaCount) ([]int, error) {
	type row struct {
		bun.BaseModel `bun:"table:formsvc_quota,alias:q"`

		Subject ID
		Start   int64
		Used    int
	}
	rows := make([]row, len(list))
	for i, c := range list {
		if err := s.ready(ctx, c.Subject); err != nil {
			return nil, err
		}
		rows[i] = row{Subject: ID(c.Subject), Start: micros(c.Start), Used: c.N}
	}
	// Sort them, so that nodes that add at once don't deadlock.
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Start, b.Start))
	})
	totals := make(map[row]int, len(rows))
	err := s.write(ctx, nil, func(ctx context.Context, c *Tx) error {
		for some := range slices.Chunk(rows, 200) {
			var added []row
			err := s.build.NewInsert().Conn(c).Model(&some).On("CONFLICT (subject, start) DO UPDATE").
				Set("used = q.used + EXCLUDED.used").Returning("subject, start, used").Scan(ctx, &added)
			if err != nil {
				return err
			}
			for _, r := range added {
				totals[row{Subject: r.Subject, Start: r.Start}] = r.Used
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	used := make([]int, len(list))
	for i, c := range list {
		used[i] = totals[row{Subject: ID(c.Subject), Start: micros(c.Start)}]
	}
	return used, nil
}

// QuotaUse implements formsvc.QuotaStore.
func (s *Store) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	if err := s.ready(ctx); err != nil || checkIDs(subject) != nil {
		return nil, err
	}
	var rows []struct {
		Start int64
		Used  int
	}
	err := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_quota AS q").Column("q.start", "q.used").
		Where("q.subject = ? AND q.start >= ? AND q.used > 0", ID(subject), micros(since)).Order("q.start").Scan(ctx, &rows)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	list := make([]formsvc.QuotaUse, len(rows))
	for i, r := range rows {
		list[i] = formsvc.QuotaUse{Start: fromMicros(r.Start), Used: r.Used}
	}
	return list, nil
}
