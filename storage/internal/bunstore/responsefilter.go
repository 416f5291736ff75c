package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of what a page of a filtered list reads.
const (
	mostParts = 8      // statuses that are searched one by one
	fewSorted = 10_000 // responses of one address, or changes, that are sorted; more of them are soon found in list order
	unlimited = 1 << 62
)

// Indexes of responses that SQLite doesn't choose by itself.
const (
	byPerson = "formsvc_responses_person"
	byChange = "formsvc_responses_changed"
)

// filtered returns the rows of a page with a filter or an offset. The inner query finds their identifiers, and
// skips others, in the indexes if it can: so it doesn't ask for the account.
func (s *Store) filtered(ctx context.Context, q *formsvc.ResponseQuery) (*sql.Rows, error) {
	few, err := s.few(ctx, &q.Filter, q.CampaignID)
	if err != nil {
		return nil, err
	}
	sel := s.responsesOf(q, "").ColumnExpr(s.responses.columns).Where("r.account_id = ?", ID(q.AccountID)).
		Where("r.id IN (?)", paged(s.found(q, few, q.Page.Limit+q.Page.Offset).Column("f.id"), "f.id", q.Page))
	if q.NoTotal {
		sel = sel.ColumnExpr("CAST(0 AS BIGINT)")
	} else {
		sel = sel.ColumnExpr("(?)", s.total(q))
	}
	return ordered(sel, "r.id", q.Page).Rows(ctx)
}

// few reports whether few responses have the address of a filter, or were changed after its time. It
// reads an index only, not the rows.
func (s *Store) few(ctx context.Context, f *formsvc.ResponseFilter, campaign formsvc.ID) (bool, error) {
	sel := s.build.NewSelect().ColumnExpr("1").Limit(fewSorted)
	switch {
	case f.Email != "":
		sel = sel.TableExpr(s.by("formsvc_responses AS r", byPerson)).Where("r.person = ?", person(campaign, f.Email))
	case !f.UpdatedAfter.IsZero():
		sel = sel.TableExpr(s.by("formsvc_responses AS r", byChange)).
			Where("r.campaign_id = ? AND r.updated_at > ? AND r.updated_at <> r.created_at", ID(campaign), micros(f.UpdatedAfter))
	default:
		return false, nil
	}
	n, err := s.build.NewSelect().Conn(s.read).TableExpr("(?) AS found", sel).Count(ctx)
	return n < fewSorted, err
}

// found selects from the identifiers of the matches, f.id: those that can be on a page that ends at a limit, or
// all if that is 0. Without a limit of its own, Postgres may sort a part that an index has in order.
func (s *Store) found(q *formsvc.ResponseQuery, few bool, limit int) *bun.SelectQuery {
	const union = " UNION ALL "
	var parts []any
	for _, part := range s.parts(q, few) {
		if part = part.Column("r.id"); limit > 0 {
			part = paged(part, "r.id", formsvc.PageQuery{Limit: limit, After: q.Page.After, Ascending: q.Page.Ascending})
		}
		parts = append(parts, part)
	}
	all := strings.Repeat(union+"SELECT p.id FROM (?) AS p", len(parts))[len(union):]
	return s.build.NewSelect().Conn(s.read).TableExpr("("+all+") AS f", parts...)
}

// parts returns queries that together find the matches. An index has those of each part in the order of
// the list. Only few changes, or responses of one address, are sorted.
func (s *Store) parts(q *formsvc.ResponseQuery, few bool) (parts []*bun.SelectQuery) {
	f := &q.Filter
	// The inner limit keeps the database from reading the list for its order.
	sorted := func(sel *bun.SelectQuery) *bun.SelectQuery {
		return s.build.NewSelect().TableExpr("(?) AS r", sel.Column("r.id").Limit(unlimited))
	}
	switch {
	case few && f.Email != "":
		return []*bun.SelectQuery{sorted(s.matches(q, byPerson))}
	case few && !f.UpdatedAfter.IsZero():
		id := ID(formsvc.FloorID(f.UpdatedAfter))
		return []*bun.SelectQuery{
			s.matches(q, "").Where("r.id >= ?", id), // created since, or shortly before
			sorted(s.matches(q, byChange).Where("r.updated_at <> r.created_at AND r.id < ?", id)),
		}
	}
	statuses := slices.Compact(slices.Sorted(slices.Values(f.Status)))
	if len(statuses) == 0 || len(statuses) > mostParts || f.Reference != "" {
		return []*bun.SelectQuery{s.matches(q, "")}
	}
	for _, status := range statuses {
		one := *q
		one.Filter.Status = []string{status}
		part := s.matches(&one, "")
		if status != formsvc.StatusPending { // which SQLite's index of statuses leaves out
			part = part.Where("r.status <> 'pending'")
		}
		parts = append(parts, part)
	}
	return parts
}

// responsesOf selects from the responses of a campaign, by an index unless that is "".
func (s *Store) responsesOf(q *formsvc.ResponseQuery, index string) *bun.SelectQuery {
	return s.build.NewSelect().Conn(s.read).TableExpr(s.by("formsvc_responses AS r", index)).Where("r.campaign_id = ?", ID(q.CampaignID))
}

// matches selects the matches of q, by an index unless that is "".
func (s *Store) matches(q *formsvc.ResponseQuery, index string) *bun.SelectQuery {
	sel := s.responsesOf(q, index)
	f := &q.Filter
	if len(f.Status) > 0 {
		sel = sel.Where("r.status IN (?)", bun.List(f.Status))
	}
	if f.NotStatus != "" {
		sel = sel.Where("r.status <> ?", f.NotStatus)
	}
	if f.Email != "" {
		sel = sel.Where("r.person = ?", person(q.CampaignID, f.Email))
		if !f.AnyCase {
			sel = sel.Where("r.email = ?", f.Email)
		}
	}
	if f.Reference != "" {
		sel = sel.Where("r.account_id = ? AND r.reference = ?", ID(q.AccountID), f.Reference)
	}
	// Identifiers contain the time of creation, so the index on them limits the rows to
	// read; the exact comparison uses the column.
	if !f.CreatedAfter.IsZero() {
		sel = sel.Where("r.created_at > ? AND r.id >= ?", micros(f.CreatedAfter), ID(formsvc.FloorID(f.CreatedAfter)))
	}
	if !f.CreatedBefore.IsZero() {
		// Round up: the column has microseconds, so a fraction of one can't be compared.
		sel = sel.Where("r.created_at < ? AND r.id < ?",
			micros(f.CreatedBefore.Add(time.Microsecond-time.Nanosecond)), ID(formsvc.CeilingID(f.CreatedBefore)))
	}
	if !f.UpdatedAfter.IsZero() {
		sel = sel.Where("r.updated_at > ?", micros(f.UpdatedAfter))
	}
	for name, value := range f.Metadata {
		sel = sel.Where(s.dialect.Metadata, name, value)
	}
	return sel
}

// statusCounts has the number of responses of a campaign, $1, with each status. One status may have several rows.
const statusCounts = "(SELECT s.status, s.responses FROM formsvc_statuses AS s WHERE s.campaign_id = $1" +
	" UNION ALL SELECT 'pending', c.responses FROM formsvc_counters AS c WHERE c.campaign_id = $1" +
	" UNION ALL SELECT 'pending', -s.responses FROM formsvc_statuses AS s WHERE s.campaign_id = $1) AS n"

// total counts the matches. If the filter is only a status, or empty, it sums counters.
func (s *Store) total(q *formsvc.ResponseQuery) *bun.SelectQuery {
	rest := q.Filter
	rest.Status = nil
	if !rest.IsZero() {
		return s.found(q, true, 0).ColumnExpr("count(*)")
	}
	sum := s.build.NewSelect().Conn(s.read).TableExpr(strings.ReplaceAll(statusCounts, "$1", "?0"), ID(q.CampaignID)).
		ColumnExpr("CAST(coalesce(sum(n.responses), 0) AS BIGINT)")
	if len(q.Filter.Status) > 0 {
		sum = sum.Where("n.status IN (?)", bun.List(q.Filter.Status))
	}
	return sum
}

// ResponseCounts implements formsvc.ResponseStore.
func (s *Store) ResponseCounts(ctx context.Context, key formsvc.CampaignKey) (map[string]int64, error) {
	if _, err := s.Campaign(ctx, key); err != nil {
		return nil, err
	}
	counts := make(map[string]int64)
	_, err := List(ctx, s.read, func(rows *sql.Rows, status *string) error {
		var n int64
		err := rows.Scan(status, &n)
		counts[*status] = n
		return err
	}, "SELECT n.status, CAST(sum(n.responses) AS BIGINT) FROM "+statusCounts+" GROUP BY n.status HAVING sum(n.responses) > 0",
		s.dialect.arg(key.ID))
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	return counts, nil
}
