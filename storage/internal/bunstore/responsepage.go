package bunstore

import (
	"context"
	"database/sql"

	"github.com/formsvc/toolkit/formsvc"
)

// Responses implements formsvc.ResponseStore.
func (s *Store) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	var page formsvc.Page[formsvc.Response]
	if err := s.ready(ctx, q.AccountID, q.CampaignID); err != nil {
		return page, err
	}
	q.Page = q.Page.Clamped()
	if err := formsvc.CheckText(q.Filter.Texts()...); err != nil {
		return page, err
	}
	var (
		rows *sql.Rows
		err  error
	)
	if q.Filter.IsZero() && q.Page.Offset == 0 {
		rows, err = s.unfiltered(ctx, &q)
	} else {
		rows, err = s.filtered(ctx, &q)
	}
	if err == nil {
		// Each row has the total as its last column.
		page.Items, page.More, err = pageOfRows(rows, q.Page, func(r *formsvc.Response) error {
			r.AccountID, r.CampaignID = q.AccountID, q.CampaignID
			return scanResponse(rows, r, &page.Total)
		}, (*formsvc.Response).Size)
	}
	if err == nil && len(page.Items) == 0 {
		// It has no row that tells the total, or that the campaign exists.
		_, err = s.Campaign(ctx, formsvc.CampaignKey{AccountID: q.AccountID, ID: q.CampaignID})
		if err == nil && !q.NoTotal {
			err = s.total(&q).Scan(ctx, &page.Total)
		}
	}
	if err != nil {
		return formsvc.Page[formsvc.Response]{}, s.notFound(err)
	}
	return page, nil
}

// pageStatement returns the statement of a page without a filter or an offset. Its arguments are the
// campaign, the account and the limit, and then the position if it is after one.
// There are few such statements, so that each can be prepared.
func (s *Store) pageStatement(p formsvc.PageQuery, noTotal bool) string {
	order, compare, total := " DESC", "<", "(SELECT CAST(coalesce(sum(n.responses), 0) AS BIGINT)"+
		" FROM formsvc_counters AS n WHERE n.campaign_id = $1)"
	if p.Ascending {
		order, compare = "", ">"
	}
	if noTotal {
		total = "CAST(0 AS BIGINT)"
	}
	start := "SELECT " + s.responses.columns + ", " + total + " FROM formsvc_responses AS r WHERE r.campaign_id = $1 AND r.account_id = $2"
	if p.After != "" {
		start += " AND r.id " + compare + " $4"
	}
	return start + " ORDER BY r.id" + order + " LIMIT CAST($3 AS BIGINT)" // cast, or SQLite plans again for each value
}

// unfiltered returns the rows of a page without a filter or an offset.
func (s *Store) unfiltered(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	args := []any{s.dialect.arg(q.CampaignID), s.dialect.arg(q.AccountID), q.Page.Limit + 1}
	if q.Page.After != "" {
		args = append(args, s.dialect.arg(q.Page.After))
	}
	return s.read.QueryContext(ctx, s.pageStatement(q.Page, q.NoTotal), args...)
}
