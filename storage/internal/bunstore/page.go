package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// one returns the record that matches a condition. An argument that is no identifier is NULL, which nothing matches.
func one[R, T any](ctx context.Context, s *Store, out func(*R) T, where string, args ...any) (record T, err error) {
	if err := s.ready(ctx); err != nil {
		return record, err
	}
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
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var rows []R
	if err := s.build.NewSelect().Conn(s.read).Model(&rows).Where(where, args...).Order("id").Scan(ctx); err != nil {
		return nil, s.backend.Classify(err)
	}
	return records(rows, out), nil
}

// pageOf returns a page of the records that match, with their total unless noTotal is set.
// id is the column to order by. Columns named in without aren't read.
func pageOf[R, T any](
	ctx context.Context, s *Store, id string, q formsvc.PageQuery, noTotal bool,
	where func(*bun.SelectQuery) *bun.SelectQuery, out func(*R) (T, error), size func(*T) int, without ...string,
) (page formsvc.Page[T], err error) {
	if err := s.ready(ctx); err != nil {
		return page, err
	}
	q = q.Clamped()
	sel := func() *bun.SelectQuery { return where(s.build.NewSelect().Conn(s.read).Model((*R)(nil))) }
	page.Items, page.More, err = scanPage(ctx, paged(sel().ExcludeColumn(without...), id, q), q, out, size)
	switch {
	case err != nil || noTotal:
	case q.Offset == 0 && q.After == "" && !page.More:
		page.Total = int64(len(page.Items))
	default:
		page.Total, err = sel().Count(ctx)
	}
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

// pageOfResponse reads a page of the rows of a response. The table of the model must have that alias.
func pageOfResponse[R, T any](
	ctx context.Context, s *Store, alias string, key formsvc.ResponseKey, q formsvc.PageQuery,
	out func(*R) T, size func(*T) int, without ...string,
) (page formsvc.Page[T], err error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return page, err
	}
	page, err = pageOf(ctx, s, alias+".id", q, false, func(sel *bun.SelectQuery) *bun.SelectQuery {
		return ofResponse(sel, alias, key)
	}, sure(out), size, without...)
	if err == nil && len(page.Items) == 0 {
		err = s.checkResponse(ctx, s.read, key, selectResponseID)
	}
	return page, err
}

// sizeless is the size of records that are so small that no page of them is large.
func sizeless[T any](*T) int { return 0 }
