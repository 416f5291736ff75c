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

// lockRow returns the row that matches a condition, locked until the transaction of c has ended.
func lockRow[R any](ctx context.Context, s *Store, c bun.IConn, where string, args ...any) (row R, err error) {
	q := s.build.NewSelect().Conn(c).Model(&row).Where(where, args...)
	return row, s.notFound(s.locked(q, "").Scan(ctx))
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
	where func(*bun.SelectQuery) *bun.SelectQuery, out func(*R) (T, error),
) (page formsvc.Page[T], err error) {
	q = q.Clamped()
	sel := func(model any) *bun.SelectQuery { return where(s.build.NewSelect().Conn(s.read).Model(model)) }
	if !noTotal {
		if page.Total, err = sel((*R)(nil)).Count(ctx); err != nil {
			return page, s.backend.Classify(err)
		}
	}
	page.Items, page.More, err = scanPage(ctx, paged(sel((*R)(nil)), id, q), q, out, sizeless)
	return page, s.backend.Classify(err)
}

// sure is for rows that are always valid.
func sure[R, T any](out func(*R) T) func(*R) (T, error) {
	return func(row *R) (T, error) { return out(row), nil }
}

func records[R, T any](rows []R, out func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = out(&rows[i])
	}
	return list
}

// ofResponse limits a query to the rows of a response; alias is the alias of the table.
func ofResponse(q *bun.SelectQuery, alias string, key formsvc.ResponseKey) *bun.SelectQuery {
	return q.Where(alias+".campaign_id = ? AND "+alias+".response_id = ? AND "+alias+".account_id = ?",
		ID(key.CampaignID), ID(key.ID), ID(key.AccountID))
}

// pageOfResponse reads a page of the rows of a response. The table of the model must have
// that alias, and the model a scan-only column total. Columns named in without aren't
// read.
func pageOfResponse[R, T any](
	ctx context.Context, s *Store, alias string, key formsvc.ResponseKey, q formsvc.PageQuery,
	out func(*R) (item T, total int64), size func(*T) int, without ...string,
) (formsvc.Page[T], error) {
	var page formsvc.Page[T]
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return page, err
	}
	q = q.Clamped()
	total := ofResponse(s.build.NewSelect().Model((*R)(nil)), alias, key).ColumnExpr("count(*)")
	sel := ofResponse(s.build.NewSelect().Conn(s.read).Model((*R)(nil)), alias, key).ExcludeColumn(without...).
		ColumnExpr("(?) AS total", total)
	item := func(r *R) (x T, err error) {
		x, page.Total = out(r)
		return x, nil
	}
	var err error
	if page.Items, page.More, err = scanPage(ctx, paged(sel, alias+".id", q), q, item, size); err != nil {
		return page, s.backend.Classify(err)
	}
	if len(page.Items) == 0 {
		// No row: the total, and whether the response exists, must be queried.
		err := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_responses AS r").ColumnExpr("(?)", total).
			Where("r.campaign_id = ? AND r.id = ? AND r.account_id = ?",
				ID(key.CampaignID), ID(key.ID), ID(key.AccountID)).
			Scan(ctx, &page.Total)
		return page, s.notFound(err)
	}
	return page, nil
}

// sizeless is the size of records that are so small that no page of them is large.
func sizeless[T any](*T) int { return 0 }

// holdResponse keeps a response from being deleted until the transaction of c has ended,
// without reading it.
func (s *Store) holdResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) error {
	var id ID
	err := s.locked(s.build.NewSelect().Conn(c).TableExpr("formsvc_responses AS r").Column("r.id").
		Where("r.campaign_id = ? AND r.id = ? AND r.account_id = ?",
			ID(key.CampaignID), ID(key.ID), ID(key.AccountID)), "").
		Scan(ctx, &id)
	return s.notFound(err)
}
