package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// ofResponse makes a query find what belongs to a response; alias is of the table.
func ofResponse(q *bun.SelectQuery, alias string, key formsvc.ResponseKey) *bun.SelectQuery {
	return q.Where(alias+".campaign_id = ? AND "+alias+".response_id = ? AND "+alias+".account_id = ?",
		string(key.CampaignID), string(key.ID), string(key.AccountID))
}

// pageOfResponse reads a page of what belongs to a response: rows of a model whose
// table has that alias, and a column total that is scanned only. Columns named in
// without are not read.
func pageOfResponse[R, T any](
	ctx context.Context, s *core, alias string, key formsvc.ResponseKey, q formsvc.PageQuery,
	out func(*R) (item T, total int64), without ...string,
) (formsvc.Page[T], error) {
	var page formsvc.Page[T]
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return page, err
	}
	q = q.Clamped()
	total := ofResponse(s.build.NewSelect().Model((*R)(nil)), alias, key).ColumnExpr("count(*)")
	var rows []R
	sel := ofResponse(s.build.NewSelect().Conn(s.read).Model(&rows), alias, key).ExcludeColumn(without...).
		ColumnExpr("(?) AS total", total)
	if err := paged(sel, alias+".id", q).Scan(ctx); err != nil {
		return page, s.backend.Classify(err)
	}
	if len(rows) == 0 {
		// Nothing tells the total then, or whether there is such a response.
		err := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_responses AS r").ColumnExpr("(?)", total).
			Where("r.campaign_id = ? AND r.id = ? AND r.account_id = ?",
				string(key.CampaignID), string(key.ID), string(key.AccountID)).
			Scan(ctx, &page.Total)
		return page, s.notFound(err)
	}
	rows, page.More = cutPage(rows, q)
	page.Items = make([]T, len(rows))
	for i := range rows {
		page.Items[i], page.Total = out(&rows[i])
	}
	return page, nil
}

// holdResponse keeps a response from being deleted before the transaction of c has
// ended, without reading it.
func (s *core) holdResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) error {
	var id string
	err := s.locked(s.build.NewSelect().Conn(c).TableExpr("formsvc_responses AS r").Column("r.id").
		Where("r.campaign_id = ? AND r.id = ? AND r.account_id = ?",
			string(key.CampaignID), string(key.ID), string(key.AccountID))).
		Scan(ctx, &id)
	return s.notFound(err)
}
