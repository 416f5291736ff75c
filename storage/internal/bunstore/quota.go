package bunstore

import (
	"cmp"
	"context"
	"database/sql"
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
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
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

const selectQuota = "SELECT q.start, q.used FROM formsvc_quota AS q WHERE q.subject = $1 AND q.start >= $2 AND q.used > 0 ORDER BY q.start"

// QuotaUse implements formsvc.QuotaStore.
func (s *Store) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	if err := s.ready(ctx); err != nil || checkIDs(subject) != nil {
		return nil, err
	}
	list, err := List(ctx, s.read, func(rows *sql.Rows, u *formsvc.QuotaUse) error {
		return rows.Scan((*instant)(&u.Start), &u.Used)
	}, selectQuota, s.dialect.arg(subject), micros(since))
	return list, s.backend.Classify(err)
}
