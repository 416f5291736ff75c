package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// A page of a filtered list is found by walking indexes in the order of the list: one
// walk for each status, or for new and for changed responses. Each walk goes as far as
// the page could reach. Without a walk the database plans the query.

// Limits of walks.
const (
	mostWalks = 8      // statuses; with more the database plans the query
	fewMail   = 10_000 // responses of one address that are sorted; with more the database plans the query
	fewChange = 10_000 // changes that are sorted; more of them are soon found in list order
)

// The lowest and the highest identifier.
const (
	firstID ID = "00000000-0000-0000-0000-000000000000"
	lastID  ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

func (s *Store) filtered(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	walks, err := s.walks(ctx, q)
	if err != nil {
		return nil, err
	}
	sel := s.where(q)
	if len(walks) > 0 {
		sel = s.where(&formsvc.ResponseQuery{AccountID: q.AccountID, CampaignID: q.CampaignID})
		union, args := "", make([]any, len(walks))
		for i, walk := range walks {
			if i > 0 {
				union += " UNION ALL "
			}
			union += "SELECT found.id FROM (?) AS found"
			args[i] = walk
		}
		sel = sel.Where("r.id IN ("+union+")", args...)
	}
	sel = sel.ColumnExpr(responseColumns)
	if q.NoTotal {
		sel = sel.ColumnExpr("CAST(0 AS BIGINT)")
	} else {
		sel = sel.ColumnExpr("(?)", s.total(q))
	}
	return paged(sel, "r.id", q.Page).Rows(ctx)
}

// walks returns queries that together find the identifiers of the page; none if the
// database's own plan is best.
func (s *Store) walks(ctx context.Context, q *formsvc.ResponseQuery) ([]*bun.SelectQuery, error) {
	f := &q.Filter
	if f.Reference != "" {
		return nil, nil
	}
	if f.Email != "" {
		few, err := s.fewOfPerson(ctx, q)
		if err != nil || !few {
			return nil, err
		}
		return []*bun.SelectQuery{s.sorted(s.byPerson(q), fewMail, q)}, nil
	}
	if !f.UpdatedAfter.IsZero() {
		few, err := s.fewChanges(ctx, q)
		if err != nil {
			return nil, err
		}
		if few {
			return s.walkChanged(q), nil
		}
	}
	statuses := distinct(f.Status)
	if len(statuses) == 0 || len(statuses) > mostWalks {
		return nil, nil
	}
	walks := make([]*bun.SelectQuery, len(statuses))
	for i, status := range statuses {
		walks[i] = s.walkStatus(q, status)
	}
	return walks, nil
}

func distinct(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// walkStatus finds responses of a status. It compares status and identifier as a pair. If
// it compared the status alone, the index of identifiers would have the right order, too,
// and the database would read through it even if the status is rare.
func (s *Store) walkStatus(q *formsvc.ResponseQuery, status string) *bun.SelectQuery {
	rest := *q
	rest.Filter.Status = nil
	above, below, order := firstID, lastID, " DESC"
	from, to := "(r.status, r.id) >= (?, ?)", "(r.status, r.id) <= (?, ?)"
	switch after := ID(q.Page.After); {
	case after != "" && q.Page.Ascending:
		above, from = after, "(r.status, r.id) > (?, ?)"
	case after != "":
		below, to = after, "(r.status, r.id) < (?, ?)"
	}
	if q.Page.Ascending {
		order = ""
	}
	return s.whereBy(&rest, "formsvc_responses_status").ColumnExpr("r.id").Where(from, status, above).Where(to, status, below).
		OrderExpr("r.status" + order + ", r.id" + order).Limit(int64(reach(q)))
}

// reach returns how many matches of a walk can be on the page, or show that another
// follows.
func reach(q *formsvc.ResponseQuery) int { return q.Page.Offset + q.Page.Limit + 1 }

const countChanges = "SELECT count(*) FROM (SELECT 1 FROM formsvc_responses AS r WHERE r.campaign_id =" +
	" (SELECT c.id FROM formsvc_campaigns AS c WHERE c.id = $1 AND c.account_id = $2)" +
	" AND r.updated_at > $3 AND r.updated_at <> r.created_at LIMIT CAST($4 AS BIGINT)) AS changed"

// fewChanges reports whether few responses have changed recently and after their
// creation.
func (s *Store) fewChanges(ctx context.Context, q *formsvc.ResponseQuery) (bool, error) {
	var n int
	err := s.read.QueryRowContext(ctx, countChanges, s.dialect.arg(q.CampaignID), s.dialect.arg(q.AccountID),
		micros(q.Filter.UpdatedAfter), fewChange).Scan(&n)
	return n < fewChange, err
}

// byPerson is like where, by the index of persons.
func (s *Store) byPerson(q *formsvc.ResponseQuery) *bun.SelectQuery {
	return s.whereIn(q, s.dialect.ByPerson)
}

// fewOfPerson reports whether few responses have the email address.
func (s *Store) fewOfPerson(ctx context.Context, q *formsvc.ResponseQuery) (bool, error) {
	found := s.build.NewSelect().Conn(s.read).TableExpr("(?) AS found", s.byPerson(q).ColumnExpr("1").Limit(fewMail))
	n, err := found.Count(ctx)
	return n < fewMail, err
}

// walkChanged finds responses created recently, and the few older ones that have changed.
func (s *Store) walkChanged(q *formsvc.ResponseQuery) []*bun.SelectQuery {
	made, changed := s.since(q)
	return []*bun.SelectQuery{paged(made.ColumnExpr("r.id"), "r.id", reachPage(q)), s.sorted(changed, fewChange, q)}
}

// sorted finds up to most responses before it sorts them, so that the database doesn't
// read through the index of identifiers for its order.
func (s *Store) sorted(sel *bun.SelectQuery, most int64, q *formsvc.ResponseQuery) *bun.SelectQuery {
	found := s.build.NewSelect().TableExpr("(?) AS r", sel.ColumnExpr("r.id").Limit(most)).ColumnExpr("r.id")
	return paged(found, "r.id", reachPage(q))
}

// reachPage returns the part of a walk that can be on the page.
func reachPage(q *formsvc.ResponseQuery) formsvc.PageQuery {
	return formsvc.PageQuery{Limit: reach(q) - 1, After: q.Page.After, Ascending: q.Page.Ascending}
}

// since returns the responses of q in two parts: those created since UpdatedAfter, or
// shortly before, and older ones that have changed.
func (s *Store) since(q *formsvc.ResponseQuery) (made, changed *bun.SelectQuery) {
	id := ID(formsvc.FloorID(q.Filter.UpdatedAfter))
	return s.where(q).Where("r.id >= ?", id),
		s.whereBy(q, "formsvc_responses_changed").Where("r.updated_at <> r.created_at AND r.id < ?", id)
}

// total counts the matches. If the filter is only a status, it sums counters.
func (s *Store) total(q *formsvc.ResponseQuery) *bun.SelectQuery {
	campaign := ID(q.CampaignID)
	rest := q.Filter
	rest.Status = nil
	switch {
	case rest.Email != "":
		return s.byPerson(q).ColumnExpr("count(*)")
	case !rest.UpdatedAfter.IsZero():
		made, changed := s.since(q)
		return s.build.NewSelect().ColumnExpr("(?) + (?)", made.ColumnExpr("count(*)"), changed.ColumnExpr("count(*)"))
	case len(q.Filter.Status) == 0 || !rest.IsZero():
		return s.where(q).ColumnExpr("count(*)")
	}
	count := func(table string) *bun.SelectQuery {
		return s.build.NewSelect().TableExpr(table+" AS n").ColumnExpr("coalesce(sum(n.responses), 0)").Where("n.campaign_id = ?", campaign)
	}
	moved := count("formsvc_statuses").Where("n.status IN (?)", bun.List(distinct(q.Filter.Status)))
	sum := s.build.NewSelect()
	if !slices.Contains(q.Filter.Status, formsvc.StatusPending) {
		return sum.ColumnExpr("CAST((?) AS BIGINT)", moved)
	}
	return sum.ColumnExpr("CAST((?) + (?) - (?) AS BIGINT)", moved, count("formsvc_counters"), count("formsvc_statuses"))
}

// indexed returns the clause after the name of a table that must be read by an index.
func (s *Store) indexed(index string) string {
	if index == "" || s.dialect.IndexedBy == "" {
		return ""
	}
	return " " + s.dialect.IndexedBy + " " + index
}
