package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// Responses implements formsvc.ResponseStore.
func (s *Store) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	var page formsvc.Page[formsvc.Response]
	if err := s.ready(ctx, q.AccountID, q.CampaignID); err != nil {
		return page, err
	}
	q.Page = q.Page.Clamped()
	texts := append([]string{q.Filter.Email, q.Filter.Reference}, q.Filter.Status...)
	if err := formsvc.CheckText(texts...); err != nil {
		return page, err
	}
	var (
		rows *sql.Rows
		err  error
	)
	switch {
	case !q.Filter.IsZero():
		rows, err = s.filtered(ctx, &q)
	case q.Page.Offset > 0:
		rows, err = s.offsetPage(ctx, &q)
	case q.NoTotal:
		rows, err = s.barePage(ctx, &q)
	default:
		rows, err = s.cursorPage(ctx, &q)
	}
	if err == nil {
		err = collect(rows, &q, &page)
	}
	if err == nil && len(page.Items) == 0 {
		err = s.emptyPage(ctx, &q, &page)
	}
	if err != nil {
		return formsvc.Page[formsvc.Response]{}, s.notFound(err)
	}
	if q.NoTotal {
		page.Total = 0
	}
	if !page.More {
		page.Items, page.More = cutPage(page.Items, q.Page)
	}
	return page, nil
}

// collect reads the rows of a page, each with the total as its last column, up to
// q.Page.MaxBytes. If rows are left, it sets More.
func collect(rows *sql.Rows, q *formsvc.ResponseQuery, page *formsvc.Page[formsvc.Response]) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	page.Items = make([]formsvc.Response, 0, min(q.Page.Limit+1, 64))
	size := 0
	for rows.Next() {
		if q.Page.MaxBytes > 0 && size >= q.Page.MaxBytes {
			page.More = true
			return nil
		}
		page.Items = append(page.Items, formsvc.Response{AccountID: q.AccountID, CampaignID: q.CampaignID})
		last := &page.Items[len(page.Items)-1]
		if err := scanResponse(rows, last, &page.Total); err != nil {
			return err
		}
		size += last.Size()
	}
	return rows.Err()
}

const selectTotal = "SELECT CAST(" + countResponses + " AS BIGINT) FROM formsvc_campaigns AS c" +
	" WHERE c.id = ? AND c.account_id = ?"

// emptyPage queries what a page without rows can't tell: the total, and whether the
// campaign exists.
func (s *Store) emptyPage(ctx context.Context, q *formsvc.ResponseQuery, page *formsvc.Page[formsvc.Response]) error {
	row := s.read.QueryRowContext(ctx, s.rebind(selectTotal), string(q.CampaignID), string(q.AccountID))
	if err := row.Scan(&page.Total); err != nil || q.NoTotal || q.Filter.IsZero() {
		return err
	}
	return s.total(q).Conn(s.read).Scan(ctx, &page.Total)
}

// The statements of a page without a filter. Each direction has its own text, so that
// both can be prepared.
const (
	pageStart = "SELECT " + ResponseColumns + ", (SELECT CAST(coalesce(sum(n.responses), 0) AS BIGINT)" +
		" FROM formsvc_counters AS n WHERE n.campaign_id = ?)" +
		" FROM formsvc_responses AS r WHERE r.campaign_id = ? AND r.account_id = ?"

	// The same without a count, for cursors.
	bareStart = "SELECT " + ResponseColumns + ", CAST(0 AS BIGINT)" +
		" FROM formsvc_responses AS r WHERE r.campaign_id = ? AND r.account_id = ?"

	bareDescending      = bareStart + " ORDER BY r.id DESC" + limit
	bareAscending       = bareStart + " ORDER BY r.id" + limit
	bareDescendingAfter = bareStart + " AND r.id < ? ORDER BY r.id DESC" + limit
	bareAscendingAfter  = bareStart + " AND r.id > ? ORDER BY r.id" + limit

	// The cast keeps SQLite from planning again for each value of the limit.
	limit = " LIMIT CAST(? AS BIGINT)"

	pageDescending      = pageStart + " ORDER BY r.id DESC" + limit
	pageAscending       = pageStart + " ORDER BY r.id" + limit
	pageDescendingAfter = pageStart + " AND r.id < ? ORDER BY r.id DESC" + limit
	pageAscendingAfter  = pageStart + " AND r.id > ? ORDER BY r.id" + limit

	// The inner query skips rows by reading the index alone.
	skip                 = " AND r.id IN (SELECT s.id FROM formsvc_responses AS s WHERE s.campaign_id = ? ORDER BY s.id"
	offset               = limit + " OFFSET CAST(? AS BIGINT))"
	pageDescendingOffset = pageStart + skip + " DESC" + offset + " ORDER BY r.id DESC"
	pageAscendingOffset  = pageStart + skip + offset + " ORDER BY r.id"
)

func (s *Store) cursorPage(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	campaign, account, n := string(q.CampaignID), string(q.AccountID), q.Page.Limit+1
	if q.Page.After == "" {
		query := pageDescending
		if q.Page.Ascending {
			query = pageAscending
		}
		return s.read.QueryContext(ctx, s.rebind(query), campaign, campaign, account, n)
	}
	query := pageDescendingAfter
	if q.Page.Ascending {
		query = pageAscendingAfter
	}
	return s.read.QueryContext(ctx, s.rebind(query), campaign, campaign, account, string(q.Page.After), n)
}

// BarePages returns the statements of pages without a filter and a total, for tests of
// their plans. Their arguments are a campaign, its account, the position and the limit.
func BarePages() []string {
	return []string{bareDescending, bareAscending, bareDescendingAfter, bareAscendingAfter}
}

func (s *Store) barePage(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	campaign, account, n := string(q.CampaignID), string(q.AccountID), q.Page.Limit+1
	if q.Page.After == "" {
		query := bareDescending
		if q.Page.Ascending {
			query = bareAscending
		}
		return s.read.QueryContext(ctx, s.rebind(query), campaign, account, n)
	}
	query := bareDescendingAfter
	if q.Page.Ascending {
		query = bareAscendingAfter
	}
	return s.read.QueryContext(ctx, s.rebind(query), campaign, account, string(q.Page.After), n)
}

func (s *Store) offsetPage(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	query := pageDescendingOffset
	if q.Page.Ascending {
		query = pageAscendingOffset
	}
	campaign := string(q.CampaignID)
	return s.read.QueryContext(ctx, s.rebind(query), campaign, campaign, string(q.AccountID), campaign,
		q.Page.Limit+1, q.Page.Offset)
}

func (s *Store) where(q *formsvc.ResponseQuery) *bun.SelectQuery { return s.whereBy(q, "") }

// whereBy is like where, and names the index if the database allows it.
func (s *Store) whereBy(q *formsvc.ResponseQuery, index string) *bun.SelectQuery {
	sel := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_responses AS r"+s.indexed(index)).
		Where("r.campaign_id = ? AND r.account_id = ?", string(q.CampaignID), string(q.AccountID))
	f := &q.Filter
	if len(f.Status) > 0 {
		sel = sel.Where("r.status IN (?)", bun.List(f.Status))
	}
	switch {
	case f.Email == "":
	case f.AnyCase:
		sel = sel.Where(s.statements.FoldedEmail+" = ?", formsvc.FoldEmail(f.Email))
	default:
		sel = sel.Where("r.email = ?", f.Email)
	}
	if f.Reference != "" {
		sel = sel.Where("r.reference = ?", f.Reference)
	}
	// Identifiers contain the time of creation, so the index on them limits the rows to
	// read; the exact comparison uses the column.
	if !f.CreatedAfter.IsZero() {
		sel = sel.Where("r.created_at > ? AND r.id >= ?", micros(f.CreatedAfter), string(formsvc.FloorID(f.CreatedAfter)))
	}
	if !f.CreatedBefore.IsZero() {
		// Round up: the column has microseconds, so a fraction of one can't be compared.
		sel = sel.Where("r.created_at < ?", micros(f.CreatedBefore.Add(time.Microsecond-time.Nanosecond)))
	}
	if !f.UpdatedAfter.IsZero() {
		sel = sel.Where("r.updated_at > ?", micros(f.UpdatedAfter))
	}
	return sel
}
