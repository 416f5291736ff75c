package bunstore

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// Erase implements formsvc.MaintenanceStore.
func (s maintenance) Erase(ctx context.Context, e formsvc.Erasing, change formsvc.Change) (formsvc.Erased, error) {
	if err := s.ready(ctx); err != nil {
		return formsvc.Erased{}, err
	}
	if err := formsvc.CheckText(e.AnswersWith); err != nil {
		return formsvc.Erased{}, err
	}
	if err := checkChange(&change); err != nil {
		return formsvc.Erased{}, err
	}
	if e.DryRun {
		r := erasure{core: s.core, c: s.read, account: string(e.AccountID), count: true}
		err := r.run(ctx, &e)
		return r.out, s.backend.Classify(err)
	}
	var out formsvc.Erased
	err := s.changing(ctx, &change, func(ctx context.Context, c bun.IConn) error {
		r := erasure{core: s.core, c: c, account: string(e.AccountID)}
		err := r.run(ctx, &e)
		out = r.out
		return err
	})
	if err != nil {
		return formsvc.Erased{}, err
	}
	return out, nil
}

// An erasure is a transaction that removes rows, or only counts them.
//
// On a database with many writers it locks in the same order as other writers. Responses
// come first, as for a write that adds to one. Then come deliveries, whose lock waits for
// an attempt under way, then their dependents, then counters; in each table by
// identifier. This order prevents deadlocks, and rows added before a lock was acquired
// are found after it.
type erasure struct {
	*core

	c       bun.IConn
	account string
	count   bool
	out     formsvc.Erased

	gone []string // identifiers of the responses
	made []string // identifiers of the events that they were created with
}

func (r *erasure) run(ctx context.Context, e *formsvc.Erasing) error {
	if checkIDs(formsvc.ID(r.account)) != nil {
		return nil // no account has this identifier
	}
	campaigns, err := r.responses(ctx, e.Responses)
	if err != nil {
		return err
	}
	if err := r.signatures(ctx, e.Signatures); err != nil {
		return err
	}
	if err := r.events(ctx, e.Events); err != nil {
		return err
	}
	if err := r.answers(ctx, e); err != nil {
		return err
	}
	if r.count {
		return nil
	}
	for _, c := range campaigns {
		if err := r.backend.AddCount(ctx, r.c, c.id, -c.responses); err != nil {
			return err
		}
	}
	return nil
}

// emptied is a campaign with the number of responses it lost.
type emptied struct {
	id        formsvc.ID
	responses int
}

// responses removes responses with everything that belongs to them alone, campaign by
// campaign.
func (r *erasure) responses(ctx context.Context, keys []formsvc.ResponseKey) ([]emptied, error) {
	byCampaign := make(map[formsvc.ID][]formsvc.ID)
	for _, key := range keys {
		if string(key.AccountID) == r.account && checkIDs(key.CampaignID) == nil {
			byCampaign[key.CampaignID] = append(byCampaign[key.CampaignID], key.ID)
		}
	}
	list := make([]emptied, 0, len(byCampaign))
	for id := range byCampaign {
		list = append(list, emptied{id: id})
	}
	slices.SortFunc(list, func(a, b emptied) int { return strings.Compare(string(a.id), string(b.id)) })
	for i := range list {
		campaign := string(list[i].id)
		for some := range slices.Chunk(sortedIDs(byCampaign[list[i].id]), eraseBatch) {
			where, args := "campaign_id = ? AND id IN (?)", []any{campaign, bun.List(some)}
			if err := r.madeWith(ctx, where, args...); err != nil {
				return nil, err
			}
			gone, err := r.take(ctx, "formsvc_responses", where, args...)
			if err != nil {
				return nil, err
			}
			if len(gone) == 0 {
				continue
			}
			list[i].responses += len(gone)
			r.gone = append(r.gone, gone...)
			if err := r.belongings(ctx, campaign, gone); err != nil {
				return nil, err
			}
		}
		r.out.Responses += list[i].responses
	}
	return slices.DeleteFunc(list, func(c emptied) bool { return c.responses == 0 }), nil
}

// madeWith records the events that responses were created with.
func (r *erasure) madeWith(ctx context.Context, where string, args ...any) error {
	var lists []string
	q := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_responses").Column("events").Where(where, args...).
		Where("account_id = ?", r.account)
	if err := q.Scan(ctx, &lists); err != nil {
		return err
	}
	for _, list := range lists {
		for id := range strings.SplitSeq(list, ",") {
			if checkIDs(formsvc.ID(id)) == nil {
				r.made = append(r.made, id)
			}
		}
	}
	return nil
}

// eraseBatch is how many identifiers one statement names.
const eraseBatch = 200

// belongings removes what belongs to responses alone.
func (r *erasure) belongings(ctx context.Context, campaign string, responses []string) error {
	const of = "campaign_id = ? AND response_id IN (?)"
	files, err := r.take(ctx, "formsvc_files", of, campaign, bun.List(responses))
	if err != nil {
		return err
	}
	for _, id := range files {
		r.out.FileIDs = append(r.out.FileIDs, formsvc.ID(id))
	}
	slices.Sort(r.out.FileIDs)
	r.out.Files += len(files)
	if err := r.remove(ctx, &r.out.Comments, "formsvc_comments", of, campaign, bun.List(responses)); err != nil {
		return err
	}
	return r.remove(ctx, &r.out.Signatures, "formsvc_signatures", of, campaign, bun.List(responses))
}

func (r *erasure) signatures(ctx context.Context, ids []formsvc.ID) error {
	for some := range slices.Chunk(sortedIDs(ids), eraseBatch) {
		where, args := "id IN (?)", []any{bun.List(some)}
		if r.count && len(r.gone) > 0 { // they still exist, and are counted
			where, args = where+" AND response_id NOT IN (?)", append(args, bun.List(r.gone))
		}
		gone, err := r.take(ctx, "formsvc_signatures", where, args...)
		if err != nil {
			return err
		}
		r.out.Signatures += len(gone)
	}
	return nil
}

// events removes the events with those identifiers and those about the removed responses,
// with everything that depends on them.
func (r *erasure) events(ctx context.Context, ids []formsvc.ID) error {
	list := append(sortedIDs(ids), r.made...)
	for some := range slices.Chunk(r.gone, eraseBatch) {
		about, err := r.find(ctx, "formsvc_events", "about IN (?)", bun.List(some))
		if err != nil {
			return err
		}
		list = append(list, about...)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	// Leave out events of other accounts before looking for their dependents.
	own := make([]string, 0, len(list))
	for some := range slices.Chunk(list, eraseBatch) {
		found, err := r.find(ctx, "formsvc_events", "id IN (?)", bun.List(some))
		if err != nil {
			return err
		}
		own = append(own, found...)
	}
	if len(own) == 0 {
		return nil
	}
	if err := r.deliveries(ctx, own); err != nil {
		return err
	}
	for some := range slices.Chunk(own, eraseBatch) {
		if err := r.remove(ctx, &r.out.Events, "formsvc_events", "id IN (?)", bun.List(some)); err != nil {
			return err
		}
		if err := r.notices(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// deliveries removes the deliveries of events to the account's webhooks, and then their
// attempts: a delivery that finishes meanwhile has added its attempt by then. Deliveries
// of deleted webhooks are left to Prune.
func (r *erasure) deliveries(ctx context.Context, events []string) error {
	var hooks []string
	err := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_webhooks AS w").Column("w.id").
		Where("w.account_id = ?", r.account).Order("w.id").Scan(ctx, &hooks)
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		ids := make([]string, len(events))
		for i, id := range events {
			ids[i] = string(formsvc.DeliveryID(formsvc.ID(id), formsvc.ID(hook)))
		}
		slices.Sort(ids)
		for some := range slices.Chunk(ids, eraseBatch) {
			var found []string
			q := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_deliveries AS d").Column("d.id").
				Where("d.webhook_id = ? AND d.id IN (?)", hook, bun.List(some)).Order("d.id")
			if err := r.locking(q).Scan(ctx, &found); err != nil {
				return err
			}
			if len(found) == 0 {
				continue
			}
			err := r.remove(ctx, &r.out.Deliveries, "formsvc_deliveries", "webhook_id = ? AND id IN (?)", hook, bun.List(found))
			if err != nil {
				return err
			}
			if err := r.remove(ctx, &r.out.Attempts, "formsvc_attempts", "delivery_id IN (?)", bun.List(found)); err != nil {
				return err
			}
		}
	}
	return nil
}

// notices removes the notices of events, including those for deleted webhooks. The
// identifier of a delivery begins with the time of its event, so the index on it limits
// the rows to read.
func (r *erasure) notices(ctx context.Context, events []string) error {
	const times = 50 // in one statement
	const timeDigits = len("00000000-0000")
	prefixes := make([]string, len(events))
	for i, id := range events {
		prefixes[i] = id[:timeDigits]
	}
	var ids []string
	for some := range slices.Chunk(slices.Compact(prefixes), times) {
		var rows []struct{ DeliveryID, AccountID, EventID string }
		q := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_notices AS n").Column("n.delivery_id", "n.account_id", "n.event_id")
		for _, prefix := range some {
			q = q.WhereOr("n.delivery_id BETWEEN ? AND ?", prefix+"-0000-0000-000000000000", prefix+"-ffff-ffff-ffffffffffff")
		}
		if err := q.Scan(ctx, &rows); err != nil {
			return err
		}
		for _, row := range rows {
			if _, ours := slices.BinarySearch(events, row.EventID); ours && row.AccountID == r.account {
				ids = append(ids, row.DeliveryID)
			}
		}
	}
	slices.Sort(ids)
	for some := range slices.Chunk(ids, eraseBatch) {
		if err := r.remove(ctx, &r.out.Notices, "formsvc_notices", "delivery_id IN (?)", bun.List(some)); err != nil {
			return err
		}
	}
	return nil
}

// answers empties the idempotency records of calls about removed responses, and those of
// calls about e.AnswersOf and, if e.Refusals is set, of refusals whose reply contains
// e.AnswersWith.
func (r *erasure) answers(ctx context.Context, e *formsvc.Erasing) error {
	for some := range slices.Chunk(r.gone, eraseBatch) {
		if err := r.empty(ctx, "response_id IN (?) AND account_id = ?", bun.List(some), r.account); err != nil {
			return err
		}
	}
	text := formsvc.FoldEmail(e.AnswersWith)
	others := slices.DeleteFunc(sortedIDs(e.AnswersOf), func(id string) bool { return slices.Contains(r.gone, id) })
	for some := range slices.Chunk(others, mostReplies) {
		of := r.replies().Where("i.response_id IN (?)", bun.List(some))
		if _, err := r.emptyWith(ctx, of, text); err != nil {
			return err
		}
	}
	last := []byte{}
	for e.Refusals && last != nil {
		// The database uses the index on refusals only if the text of the query has the index's condition.
		refused := r.replies().Where("i.id > ? AND i.status >= 400 AND i.response_id IS NULL", last)
		var err error
		if last, err = r.emptyWith(ctx, refused.Limit(mostReplies), text); err != nil {
			return err
		}
	}
	return nil
}

// mostReplies is how many responses' or refusals' replies are in memory at once.
const mostReplies = 20

func (r *erasure) replies() *bun.SelectQuery {
	return r.build.NewSelect().Conn(r.c).TableExpr("formsvc_idempotency AS i").Column("i.id", "i.body").
		Where("i.account_id = ?", r.account).Order("i.id")
}

// emptyWith empties the records of q whose reply contains text, and returns the last one's
// primary key, or nil if there are none.
func (r *erasure) emptyWith(ctx context.Context, q *bun.SelectQuery, text string) (last []byte, err error) {
	var rows []struct{ ID, Body []byte }
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	for i := range rows {
		last = rows[i].ID
		if !strings.Contains(formsvc.FoldEmail(string(rows[i].Body)), text) {
			continue
		}
		if err := r.empty(ctx, "id = ?", last); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// empty removes the reply from records that have one.
func (r *erasure) empty(ctx context.Context, where string, args ...any) error {
	where, args = where+" AND status <> ?", append(args, http.StatusGone)
	if r.count {
		found, err := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_idempotency").Where(where, args...).Count(ctx)
		r.out.Answers += int(found)
		return err
	}
	result, err := r.build.NewUpdate().Conn(r.c).TableExpr("formsvc_idempotency").
		Set("status = ?, etag = '', location = '', body = ?", http.StatusGone, []byte{}).Where(where, args...).Exec(ctx)
	if err != nil {
		return err
	}
	emptied, err := result.RowsAffected()
	r.out.Answers += int(emptied)
	return err
}

// find returns the sorted identifiers of the account's rows that match a condition.
// Neither the account nor the order is part of the query, so that the database doesn't
// choose an index for them.
func (r *erasure) find(ctx context.Context, table, where string, args ...any) ([]string, error) {
	ids, err := r.scan(ctx, r.build.NewSelect().Conn(r.c).TableExpr(table).Column("id", "account_id").Where(where, args...))
	slices.Sort(ids)
	return ids, err
}

// take is like find, and locks and removes the rows.
func (r *erasure) take(ctx context.Context, table, where string, args ...any) ([]string, error) {
	q := r.build.NewSelect().Conn(r.c).TableExpr(table).Column("id", "account_id").Where(where, args...).Order("id")
	ids, err := r.scan(ctx, r.locking(q))
	if err != nil || len(ids) == 0 || r.count {
		return ids, err
	}
	for some := range slices.Chunk(ids, eraseBatch) {
		q := r.build.NewDelete().Conn(r.c).TableExpr(table).Where("id IN (?)", bun.List(some))
		if table == "formsvc_responses" { // their identifiers are found by campaign
			q = q.Where(where, args...)
		}
		if _, err := q.Exec(ctx); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// scan returns the identifiers of the account's rows.
func (r *erasure) scan(ctx context.Context, q *bun.SelectQuery) ([]string, error) {
	var rows []struct{ ID, AccountID string }
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(rows))
	for _, row := range rows {
		if row.AccountID == r.account {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// locking makes a query lock the rows that it finds, unless the erasure only counts.
func (r *erasure) locking(q *bun.SelectQuery) *bun.SelectQuery {
	if r.count {
		return q
	}
	return r.locked(q)
}

// remove removes the rows that match a condition, and adds their number to n.
func (r *erasure) remove(ctx context.Context, n *int, table, where string, args ...any) error {
	if r.count {
		found, err := r.build.NewSelect().Conn(r.c).TableExpr(table).Where(where, args...).Count(ctx)
		*n += int(found)
		return err
	}
	result, err := r.build.NewDelete().Conn(r.c).TableExpr(table).Where(where, args...).Exec(ctx)
	if err != nil {
		return err
	}
	removed, err := result.RowsAffected()
	*n += int(removed)
	return err
}
