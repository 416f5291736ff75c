package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A page of a filtered list is found by walking indexes in the order of the list: one
// walk for each status, or for new and for changed responses. Each walk goes as far as
// the page could reach. Without a walk the database plans the query.

// Limits of walks.
const (
	mostWalks = 8      // statuses; with more the database plans the query
	fewSorted = 10_000 // responses of one address, or changes, that are sorted; more of them are soon found in list order
)

// Indexes of responses.
const (
	byCampaign = "formsvc_responses_campaign" // in SQLite, with the status
	byStatus   = "formsvc_responses_status"   // in SQLite only of responses that aren't pending
	byPerson   = "formsvc_responses_person"
	byChange   = "formsvc_responses_changed"
)

func (s *Store) filtered(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	walks, err := s.walks(ctx, q)
	if err != nil {
		return nil, err
	}
	sel := s.matches(q, "")
	if len(walks) > 0 {
		const union = " UNION ALL "
		found := strings.Repeat(union+"SELECT found.id FROM (?) AS found", len(walks))[len(union):]
		sel = s.matches(&formsvc.ResponseQuery{AccountID: q.AccountID, CampaignID: q.CampaignID}, "").Where("r.id IN ("+found+")", walks...)
	}
	sel = sel.ColumnExpr(s.responses.columns)
	if q.NoTotal {
		sel = sel.ColumnExpr("CAST(0 AS BIGINT)")
	} else {
		sel = sel.ColumnExpr("(?)", s.total(q))
	}
	return paged(sel, "r.id", q.Page).Rows(ctx)
}

// walks returns queries that together find the identifiers of the page; none if the
// database's own plan is best.
func (s *Store) walks(ctx context.Context, q *formsvc.ResponseQuery) (walks []any, err error) {
	f := &q.Filter
	if f.Reference != "" {
		return nil, nil
	}
	if f.Email != "" {
		if few, err := s.few(ctx, byPerson, "r.person = ?", person(q.CampaignID, f.Email)); err != nil || !few {
			return nil, err
		}
		return []any{s.sorted(s.matches(q, byPerson), q)}, nil
	}
	if !f.UpdatedAfter.IsZero() {
		few, err := s.few(ctx, byChange, "r.campaign_id = (SELECT c.id FROM formsvc_campaigns AS c WHERE c.id = ? AND c.account_id = ?) "+
			"AND r.updated_at > ? AND r.updated_at <> r.created_at", ID(q.CampaignID), ID(q.AccountID), micros(f.UpdatedAfter))
		if err != nil {
			return nil, err
		}
		if few {
			made, changed := s.since(q)
			return []any{walk(made, q), s.sorted(changed, q)}, nil
		}
	}
	statuses := slices.Compact(slices.Sorted(slices.Values(f.Status)))
	if len(statuses) > mostWalks {
		return nil, nil
	}
	for _, status := range statuses {
		one := *q
		one.Filter.Status = []string{status}
		if status == formsvc.StatusPending {
			walks = append(walks, walk(s.matches(&one, byCampaign), q))
			continue
		}
		walks = append(walks, walk(s.matches(&one, byStatus).Where("r.status <> 'pending'"), q))
	}
	return walks, nil
}

// few reports whether an index finds few rows. Nothing else is read, since the rows may be far apart: whose they are, they
// say themselves.
func (s *Store) few(ctx context.Context, index, where string, args ...any) (bool, error) {
	found := s.build.NewSelect().TableExpr(s.by("formsvc_responses AS r", index)).ColumnExpr("1").Where(where, args...).Limit(fewSorted)
	n, err := s.build.NewSelect().Conn(s.read).TableExpr("(?) AS found", found).Count(ctx)
	return n < fewSorted, err
}

// walk returns the matches that can be on the page, or show that another follows.
func walk(sel *bun.SelectQuery, q *formsvc.ResponseQuery) *bun.SelectQuery {
	return paged(sel.ColumnExpr("r.id"), "r.id",
		formsvc.PageQuery{Limit: q.Page.Offset + q.Page.Limit, After: q.Page.After, Ascending: q.Page.Ascending})
}

// sorted is walk for few matches. It finds them all before it sorts them, so that the
// database doesn't read through the index of identifiers for its order.
func (s *Store) sorted(sel *bun.SelectQuery, q *formsvc.ResponseQuery) *bun.SelectQuery {
	return walk(s.build.NewSelect().TableExpr("(?) AS r", sel.ColumnExpr("r.id").Limit(fewSorted)), q)
}

// since returns the responses of q in two parts: those created since UpdatedAfter, or
// shortly before, and older ones that have changed.
func (s *Store) since(q *formsvc.ResponseQuery) (made, changed *bun.SelectQuery) {
	id := ID(formsvc.FloorID(q.Filter.UpdatedAfter))
	return s.matches(q, "").Where("r.id >= ?", id),
		s.matches(q, byChange).Where("r.updated_at <> r.created_at AND r.id < ?", id)
}

// total counts the matches. If the filter is only a status, it sums counters.
func (s *Store) total(q *formsvc.ResponseQuery) *bun.SelectQuery {
	campaign := ID(q.CampaignID)
	rest := q.Filter
	rest.Status = nil
	switch {
	case rest.Email != "":
		return s.matches(q, byPerson).ColumnExpr("count(*)")
	case !rest.UpdatedAfter.IsZero():
		made, changed := s.since(q)
		return s.build.NewSelect().ColumnExpr("(?) + (?)", made.ColumnExpr("count(*)"), changed.ColumnExpr("count(*)"))
	case len(q.Filter.Status) == 0 || !rest.IsZero():
		return s.matches(q, "").ColumnExpr("count(*)")
	}
	count := func(table string) *bun.SelectQuery {
		return s.build.NewSelect().TableExpr(table+" AS n").ColumnExpr("coalesce(sum(n.responses), 0)").Where("n.campaign_id = ?", campaign)
	}
	moved := count("formsvc_statuses").Where("n.status IN (?)", bun.List(q.Filter.Status))
	sum := s.build.NewSelect()
	if !slices.Contains(q.Filter.Status, formsvc.StatusPending) {
		return sum.ColumnExpr("CAST((?) AS BIGINT)", moved)
	}
	return sum.ColumnExpr("CAST((?) + (?) - (?) AS BIGINT)", moved, count("formsvc_counters"), count("formsvc_statuses"))
}

// ResponseCounts implements formsvc.ResponseStore.
func (s *Store) ResponseCounts(ctx context.Context, key formsvc.CampaignKey) (map[string]int64, error) {
	c, err := s.Campaign(ctx, key)
	if err != nil {
		return nil, err
	}
	pending, counts := c.ResponseCount, map[string]int64{}
	rows, err := s.build.NewSelect().Conn(s.read).TableExpr("formsvc_statuses AS n").ColumnExpr("n.status, CAST(sum(n.responses) AS BIGINT)").
		Where("n.campaign_id = ?", ID(key.ID)).GroupExpr("n.status").Having("sum(n.responses) > 0").Rows(ctx)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var status string
		var n int64
		if err := rows.Scan(&status, &n); err != nil {
			return nil, s.backend.Classify(err)
		}
		counts[status], pending = n, pending-n
	}
	if pending > 0 {
		counts[formsvc.StatusPending] = pending
	}
	return counts, s.backend.Classify(rows.Err())
}
