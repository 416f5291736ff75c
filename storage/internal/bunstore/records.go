package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// one returns the record that matches a condition.
func one[R, T any](ctx context.Context, s *Store, out func(*R) T, where string, args ...any) (record T, err error) {
	var row R
	if err := s.build.NewSelect().Conn(s.read).Model(&row).Where(where, args...).Scan(ctx); err != nil {
		return record, s.notFound(err)
	}
	return out(&row), nil
}

// all returns the records that match a condition, the oldest first.
func all[R, T any](ctx context.Context, s *Store, out func(*R) T, where string, args ...any) ([]T, error) {
	var rows []R
	if err := s.build.NewSelect().Conn(s.read).Model(&rows).Where(where, args...).Order("id").Scan(ctx); err != nil {
		return nil, s.backend.Classify(err)
	}
	return records(rows, out), nil
}

// pageOf returns a page of the records that match, with their total unless noTotal is set.
// id is the column to order by.
func pageOf[R, T any](
	ctx context.Context, s *Store, id string, q formsvc.PageQuery, noTotal bool,
	where func(*bun.SelectQuery) *bun.SelectQuery, out func(*R) T,
) (page formsvc.Page[T], err error) {
	q = q.Clamped()
	sel := func(model any) *bun.SelectQuery { return where(s.build.NewSelect().Conn(s.read).Model(model)) }
	if !noTotal {
		if page.Total, err = sel((*R)(nil)).Count(ctx); err != nil {
			return page, s.backend.Classify(err)
		}
	}
	var rows []R
	if err := paged(sel(&rows), id, q).Scan(ctx); err != nil {
		return page, s.backend.Classify(err)
	}
	rows, page.More = cutPage(rows, q)
	page.Items = records(rows, out)
	return page, nil
}

func records[R, T any](rows []R, out func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = out(&rows[i])
	}
	return list
}
