package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// responseColumns are the columns of a response beside the identifiers that the
// query was made with, in the order of scanResponse.
const responseColumns = "r.id, r.reference, r.status, r.email, r.first_name, r.last_name, r.answers, r.version, " +
	"r.created_at, r.updated_at, r.completed_at"

type scanner interface{ Scan(dest ...any) error }

// scanResponse reads responseColumns into r, and the columns after them into more.
func scanResponse(row scanner, r *formsvc.Response, more ...any) error {
	var (
		answers                     string
		created, updated, completed int64
	)
	if err := row.Scan(append([]any{(*string)(&r.ID), &r.Reference, &r.Status, &r.User.Email, &r.User.FirstName,
		&r.User.LastName, &answers, &r.Version, &created, &updated, &completed}, more...)...); err != nil {
		return err
	}
	r.Answers = formsvc.StoredAnswers(answers)
	r.CreatedAt, r.UpdatedAt, r.CompletedAt = fromMicros(created), fromMicros(updated), fromMicros(completed)
	return nil
}

func checkResponse(r *formsvc.Response, change *formsvc.Change) error {
	if err := checkChange(change); err != nil {
		return err
	}
	return formsvc.CheckText(r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON())
}

// CreateResponse implements formsvc.ResponseStore.
func (s *Store) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) error {
	if err := s.ready(ctx, r.AccountID, r.CampaignID); err != nil {
		return err
	}
	if err := errors.Join(checkIDs(r.ID), checkResponse(&r, &change)); err != nil {
		return err
	}
	creation := &Creation{Response: r, CampaignVersion: campaignVersion, Change: change}
	if change.Audit == nil {
		return s.submit(ctx, &Unit{Creation: creation})
	}
	// Groups have no statement for the audit trail, which responses don't write.
	return s.submit(ctx, &Unit{Do: func(ctx context.Context, c bun.IConn) error {
		if err := createAlone(ctx, s.backend, c, creation); err != nil {
			return err
		}
		return s.appendAudit(ctx, c, change.Audit)
	}})
}

const (
	selectResponse = "SELECT " + responseColumns + " FROM formsvc_responses AS r" +
		" WHERE r.campaign_id = ? AND r.id = ? AND r.account_id = ?"
	updateResponse = "UPDATE formsvc_responses SET status = ?, email = ?, first_name = ?, last_name = ?, answers = ?, " +
		"version = ?, updated_at = ?, completed_at = ? WHERE campaign_id = ? AND id = ?"
)

func (s *Store) response(
	ctx context.Context, c bun.IConn, key formsvc.ResponseKey, suffix string,
) (formsvc.Response, error) {
	r := formsvc.Response{AccountID: key.AccountID, CampaignID: key.CampaignID}
	row := c.QueryRowContext(ctx, s.rebind(selectResponse+suffix),
		string(key.CampaignID), string(key.ID), string(key.AccountID))
	return r, s.notFound(scanResponse(row, &r))
}

// lockedResponse returns a response that nobody else changes or deletes before
// the transaction of c has ended.
func (s *Store) lockedResponse(ctx context.Context, c bun.IConn, key formsvc.ResponseKey) (formsvc.Response, error) {
	lock := s.backend.ForUpdate()
	if lock != "" {
		lock = " FOR " + lock
	}
	return s.response(ctx, c, key, lock)
}

// UpdateResponse implements formsvc.ResponseStore.
func (s *Store) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	var r formsvc.Response
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return r, err
	}
	u := &Unit{}
	u.Do = func(ctx context.Context, c bun.IConn) error {
		var err error
		if r, err = s.lockedResponse(ctx, c, key); err != nil {
			return err
		}
		before := r
		change, err := decide(&r)
		if err != nil || r.Version == before.Version {
			r = before
			return err
		}
		if err := checkResponse(&r, &change); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, s.rebind(updateResponse),
			r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(), r.Version,
			micros(r.UpdatedAt), micros(r.CompletedAt), string(key.CampaignID), string(key.ID)); err != nil {
			return err
		}
		u.Wake, err = s.apply(ctx, c, &change)
		return err
	}
	if err := s.submit(ctx, u); err != nil {
		return formsvc.Response{}, err
	}
	r.UpdatedAt, r.CompletedAt = fromMicros(micros(r.UpdatedAt)), fromMicros(micros(r.CompletedAt))
	return r, nil
}

// DeleteResponse implements formsvc.ResponseStore.
func (s *Store) DeleteResponse(ctx context.Context, key formsvc.ResponseKey) ([]formsvc.ID, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return nil, err
	}
	var files []formsvc.ID
	err := s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		// The response goes first: a CreateFile that has locked it is waited for, and
		// its file found; one that comes later finds no response.
		result, err := s.build.NewDelete().Conn(c).TableExpr("formsvc_responses").
			Where("campaign_id = ? AND id = ? AND account_id = ?", string(key.CampaignID), string(key.ID), string(key.AccountID)).
			Exec(ctx)
		if err := changedOne(result, err); err != nil {
			return err
		}
		var ids []string
		if err := s.build.NewDelete().Conn(c).TableExpr("formsvc_files").
			Where("campaign_id = ? AND response_id = ?", string(key.CampaignID), string(key.ID)).
			Returning("id").Scan(ctx, &ids); err != nil {
			return err
		}
		slices.Sort(ids)
		files = make([]formsvc.ID, len(ids))
		for i, id := range ids {
			files[i] = formsvc.ID(id)
		}
		return s.backend.AddCount(ctx, c, key.CampaignID, -1)
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// Response implements formsvc.ResponseStore.
func (s *Store) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	if err := s.ready(ctx, key.AccountID, key.CampaignID, key.ID); err != nil {
		return formsvc.Response{}, err
	}
	// A point read ends sooner than a driver could cancel it, and a driver that
	// watches a context starts a goroutine for it.
	return s.response(context.WithoutCancel(ctx), s.read, key, "")
}

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
	page.Items, page.More = cutPage(page.Items, q.Page)
	return page, nil
}

// collect reads the rows of a page, each with the total as its last column.
func collect(rows *sql.Rows, q *formsvc.ResponseQuery, page *formsvc.Page[formsvc.Response]) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	page.Items = make([]formsvc.Response, 0, min(q.Page.Limit+1, 64))
	for rows.Next() {
		page.Items = append(page.Items, formsvc.Response{AccountID: q.AccountID, CampaignID: q.CampaignID})
		if err := scanResponse(rows, &page.Items[len(page.Items)-1], &page.Total); err != nil {
			return err
		}
	}
	return rows.Err()
}

const selectTotal = "SELECT CAST(" + countResponses + " AS BIGINT) FROM formsvc_campaigns AS c" +
	" WHERE c.id = ? AND c.account_id = ?"

// emptyPage says for a page without rows, which tell neither, what the total is
// and whether there is such a campaign.
func (s *Store) emptyPage(ctx context.Context, q *formsvc.ResponseQuery, page *formsvc.Page[formsvc.Response]) error {
	row := s.read.QueryRowContext(ctx, s.rebind(selectTotal), string(q.CampaignID), string(q.AccountID))
	if err := row.Scan(&page.Total); err != nil || q.Filter.IsZero() {
		return err
	}
	return s.where(q).ColumnExpr("count(*)").Scan(ctx, &page.Total)
}

// The statements of a page without a filter. Each direction is a text of its
// own, so that they can be prepared.
const (
	pageStart = "SELECT " + responseColumns + ", (SELECT CAST(coalesce(sum(n.responses), 0) AS BIGINT)" +
		" FROM formsvc_counters AS n WHERE n.campaign_id = ?)" +
		" FROM formsvc_responses AS r WHERE r.campaign_id = ? AND r.account_id = ?"

	// The cast keeps SQLite from planning anew for each value of the limit.
	limit = " LIMIT CAST(? AS BIGINT)"

	pageDescending      = pageStart + " ORDER BY r.id DESC" + limit
	pageAscending       = pageStart + " ORDER BY r.id" + limit
	pageDescendingAfter = pageStart + " AND r.id < ? ORDER BY r.id DESC" + limit
	pageAscendingAfter  = pageStart + " AND r.id > ? ORDER BY r.id" + limit

	// The inner query walks the index alone past the rows to skip.
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

func (s *Store) offsetPage(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	query := pageDescendingOffset
	if q.Page.Ascending {
		query = pageAscendingOffset
	}
	campaign := string(q.CampaignID)
	return s.read.QueryContext(ctx, s.rebind(query), campaign, campaign, string(q.AccountID), campaign,
		q.Page.Limit+1, q.Page.Offset)
}

func (s *Store) where(q *formsvc.ResponseQuery) *bun.SelectQuery {
	sel := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_responses AS r").
		Where("r.campaign_id = ? AND r.account_id = ?", string(q.CampaignID), string(q.AccountID))
	f := &q.Filter
	if len(f.Status) > 0 {
		sel = sel.Where("r.status IN (?)", bun.List(f.Status))
	}
	if f.Email != "" {
		sel = sel.Where("r.email = ?", f.Email)
	}
	if f.Reference != "" {
		sel = sel.Where("r.reference = ?", f.Reference)
	}
	// Identifiers carry the time of creation, so the index on them bounds the
	// rows that are looked at; the exact comparison is with the column.
	if !f.CreatedAfter.IsZero() {
		sel = sel.Where("r.created_at > ? AND r.id >= ?", micros(f.CreatedAfter), string(formsvc.FloorID(f.CreatedAfter)))
	}
	if !f.CreatedBefore.IsZero() {
		// Rounded up: the column has no parts of a microsecond to compare.
		sel = sel.Where("r.created_at < ?", micros(f.CreatedBefore.Add(time.Microsecond-time.Nanosecond)))
	}
	if !f.UpdatedAfter.IsZero() {
		sel = sel.Where("r.updated_at > ?", micros(f.UpdatedAfter))
	}
	return sel
}

func (s *Store) filtered(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	total := s.where(q).ColumnExpr("count(*)")
	return paged(s.where(q).ColumnExpr(responseColumns).ColumnExpr("(?)", total), "r.id", q.Page).Rows(ctx)
}

// noneWhenNotFound is for lists that are empty for what doesn't exist.
func noneWhenNotFound(err error) error {
	if errors.Is(err, formsvc.ErrNotFound) {
		return nil
	}
	return err
}
