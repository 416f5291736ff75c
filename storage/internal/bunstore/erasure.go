package bunstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// Erase implements formsvc.MaintenanceStore.
func (s *Store) Erase(ctx context.Context, q formsvc.EraseQuery) (formsvc.Erased, error) {
	if err := s.ready(ctx); err != nil || !q.AccountID.Valid() {
		return formsvc.Erased{}, err
	}
	var out formsvc.Erased
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		r := erasure{Store: s, c: c, account: ID(q.AccountID), removed: make(map[formsvc.ID]int)}
		err := r.run(ctx, &q)
		out = r.out
		return err
	})
	return out, err
}

// An erasure is a transaction that removes rows.
//
// On a database with many writers it locks in the same order as other writers. Responses
// come first, as for a write that adds to one. Then come deliveries, whose lock waits for
// an attempt under way, then their dependents, then counters; in each table by
// identifier. This order prevents deadlocks, and rows added before a lock was acquired
// are found after it.
type erasure struct {
	*Store

	c       *Tx
	account ID
	out     formsvc.Erased

	gone    []ID               // identifiers of the responses
	made    []ID               // identifiers of the events that they were created with
	removed map[formsvc.ID]int // responses of a campaign
}

func (r *erasure) run(ctx context.Context, q *formsvc.EraseQuery) error {
	if err := r.responses(ctx, q.Responses); err != nil {
		return err
	}
	for some := range slices.Chunk(sortedIDs(q.Signatures), eraseBatch) {
		own, err := r.own(ctx, "formsvc_signatures", "id IN (?)", some)
		if err == nil && len(own) > 0 {
			err = r.remove(ctx, &r.out.Signatures, "formsvc_signatures", "id IN (?)", bun.List(own))
		}
		if err != nil {
			return err
		}
	}
	if err := cmp.Or(r.events(ctx, q.Events), r.members(ctx, q)); err != nil {
		return err
	}
	if err := r.replies(ctx, q); err != nil {
		return err
	}
	for _, campaign := range slices.Sorted(maps.Keys(r.removed)) {
		if err := r.addCount(ctx, r.c, campaign, -r.removed[campaign]); err != nil {
			return err
		}
	}
	raise := formsvc.Change{Events: slices.DeleteFunc(slices.Clone(q.Raise), func(e formsvc.Event) bool {
		return !slices.Contains(r.gone, ID(e.ResponseID)) || ID(e.AccountID) != r.account
	})}
	if err := checkChange(&raise); err != nil {
		return err
	}
	return r.apply(ctx, r.c, &raise)
}

// members removes members, and the names of authors. Of both there are few.
func (r *erasure) members(ctx context.Context, q *formsvc.EraseQuery) error {
	if len(q.Members) == 0 && len(q.Authors) == 0 {
		return nil
	}
	_, err := r.build.NewUpdate().Conn(r.c).Model((*commentRow)(nil)).Set("author = ''").
		Where("account_id = ? AND author IN (?)", r.account, bun.List(q.Authors)).Exec(ctx)
	if err != nil {
		return err
	}
	return r.remove(ctx, new(int), "formsvc_members", "account_id = ? AND id IN (?)", r.account, bun.List(sortedIDs(q.Members)))
}

// eraseBatch is how many identifiers one statement names.
const eraseBatch = 200

// responses removes responses, campaign by campaign.
func (r *erasure) responses(ctx context.Context, keys []formsvc.ResponseKey) error {
	byCampaign := make(map[formsvc.ID][]formsvc.ID)
	for _, key := range keys {
		if ID(key.AccountID) == r.account && key.CampaignID.Valid() {
			byCampaign[key.CampaignID] = append(byCampaign[key.CampaignID], key.ID)
		}
	}
	for _, campaign := range slices.Sorted(maps.Keys(byCampaign)) {
		for some := range slices.Chunk(sortedIDs(byCampaign[campaign]), eraseBatch) {
			gone, made, files, err := r.dropResponses(ctx, r.c, r.account, ID(campaign), some)
			if err != nil {
				return err
			}
			if len(gone) > 0 {
				r.removed[campaign] += len(gone)
			}
			r.gone, r.made, r.out.FileIDs = append(r.gone, gone...), append(r.made, made...), append(r.out.FileIDs, files...)
		}
	}
	r.out.Responses = len(r.gone)
	slices.Sort(r.out.FileIDs)
	return nil
}

// dropResponses removes responses of a campaign with their files, comments and signatures. It returns
// the identifiers of those that existed, of the events that they were created with, and of their
// files. It locks the responses first: it waits for a CreateFile that has locked one, and a later one
// finds no response. Foreign keys don't do this, because a host's connection to SQLite may not
// enforce them.
func (s *Store) dropResponses(
	ctx context.Context, c bun.IConn, account, campaign ID, ids []ID,
) (gone, events []ID, files []formsvc.ID, err error) {
	var rows []struct {
		ID, AccountID ID
		Events        IDs
	}
	// The account is not part of the query, so that no index on it is chosen.
	q := s.build.NewSelect().Conn(c).TableExpr("formsvc_responses AS r").Column("r.id", "r.account_id", "r.events").
		Where("r.campaign_id = ? AND r.id IN (?)", campaign, bun.List(ids)).Order("r.id")
	if err := s.locked(q, "").Scan(ctx, &rows); err != nil {
		return nil, nil, nil, err
	}
	for _, row := range rows {
		if row.AccountID != account {
			continue
		}
		gone = append(gone, row.ID)
		events = append(events, row.Events...)
	}
	if len(gone) == 0 {
		return nil, nil, nil, nil
	}
	if err := s.keepResult(ctx, c, campaign, gone, []byte{}); err != nil {
		return nil, nil, nil, err
	}
	drop := func(table, id string) *bun.DeleteQuery {
		return s.build.NewDelete().Conn(c).TableExpr(table).Where("campaign_id = ? AND ? IN (?)", campaign, bun.Ident(id), bun.List(gone))
	}
	var found []fileRow
	if err := drop("formsvc_files", "response_id").Returning("id, size").Scan(ctx, &found); err != nil {
		return nil, nil, nil, err
	}
	var bytes int64
	for _, f := range found {
		files, bytes = append(files, formsvc.ID(f.ID)), bytes+f.Size
	}
	slices.Sort(files)
	if bytes > 0 {
		if err := s.addFileBytes(ctx, c, account, -bytes, 0); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, table := range []string{"formsvc_comments", "formsvc_signatures", "formsvc_places"} {
		if _, err := drop(table, "response_id").Exec(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	_, err = drop("formsvc_responses", "id").Exec(ctx)
	return gone, events, files, err
}

// events removes the events with those identifiers and those about the removed responses,
// with everything that depends on them.
func (r *erasure) events(ctx context.Context, ids []formsvc.ID) error {
	list := append(sortedIDs(ids), r.made...)
	for some := range slices.Chunk(r.gone, eraseBatch) {
		about, err := r.own(ctx, "formsvc_events", "about IN (?)", some)
		if err != nil {
			return err
		}
		list = append(list, about...)
	}
	slices.Sort(list)
	for some := range slices.Chunk(slices.Compact(list), eraseBatch) {
		own, err := r.own(ctx, "formsvc_events", "id IN (?)", some)
		if err != nil {
			return err
		}
		if len(own) == 0 {
			continue
		}
		slices.Sort(own)
		if err := r.deliveries(ctx, own); err != nil {
			return err
		}
		if err := r.remove(ctx, &r.out.Events, "formsvc_events", "id IN (?)", bun.List(own)); err != nil {
			return err
		}
		// The identifier of a delivery begins with the time of its event.
		const timeDigits = len("00000000-0000")
		first, last := own[0][:timeDigits]+"-0000-0000-000000000000", own[len(own)-1][:timeDigits]+"-ffff-ffff-ffffffffffff"
		err = r.remove(ctx, new(int), "formsvc_notices", "account_id = ? AND delivery_id BETWEEN ? AND ? AND event_id IN (?)",
			r.account, first, last, bun.List(own))
		if err != nil {
			return err
		}
	}
	return nil
}

// own returns the identifiers of the account's rows that match a condition. The account is not part
// of the query, so that the database doesn't choose the index on it.
func (r *erasure) own(ctx context.Context, table, where string, ids []ID) ([]ID, error) {
	var rows []struct{ ID, AccountID ID }
	q := r.build.NewSelect().Conn(r.c).TableExpr(table).Column("id", "account_id").Where(where, bun.List(ids))
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, err
	}
	var own []ID
	for _, row := range rows {
		if row.AccountID == r.account {
			own = append(own, row.ID)
		}
	}
	return own, nil
}

// deliveries removes the deliveries of events to the account's webhooks. Deliveries
// of deleted webhooks are left to Prune.
func (r *erasure) deliveries(ctx context.Context, events []ID) error {
	var hooks []ID
	err := r.build.NewSelect().Conn(r.c).TableExpr("formsvc_webhooks AS w").Column("w.id").
		Where("w.account_id = ?", r.account).Order("w.id").Scan(ctx, &hooks)
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		ids := make([]ID, len(events))
		for i, id := range events {
			ids[i] = ID(formsvc.DeliveryID(formsvc.ID(id), formsvc.ID(hook)))
		}
		_, _, err := r.dropDeliveries(ctx, r.c, hook, r.build.NewSelect().Where("d.id IN (?)", bun.List(ids)))
		if err != nil {
			return err
		}
	}
	return nil
}

// dropDeliveries removes the deliveries to a webhook that a query finds, and then their attempts: a delivery that
// finishes meanwhile has added its attempt by then.
func (s *Store) dropDeliveries(ctx context.Context, c bun.IConn, hook ID, q *bun.SelectQuery) (deliveries, attempts int, err error) {
	var ids []ID
	q = q.Conn(c).TableExpr("formsvc_deliveries AS d").Column("d.id").Where("d.webhook_id = ?", hook).Order("d.id")
	if err := s.locked(q, "").Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	deliveries, err = Affected(s.build.NewDelete().Conn(c).TableExpr("formsvc_deliveries").
		Where("webhook_id = ? AND id IN (?)", hook, bun.List(ids)).Exec(ctx))
	if err == nil {
		attempts, err = Affected(s.build.NewDelete().Conn(c).TableExpr("formsvc_attempts").Where("delivery_id IN (?)", bun.List(ids)).Exec(ctx))
	}
	return deliveries, attempts, err
}

// replies empties the idempotency records of calls about the removed responses and q.RepliesOf,
// and removes the account's refusals.
func (r *erasure) replies(ctx context.Context, q *formsvc.EraseQuery) error {
	for some := range slices.Chunk(append(r.gone, sortedIDs(q.RepliesOf)...), eraseBatch) {
		if err := r.emptyResults(ctx, r.c, r.account, some); err != nil {
			return err
		}
	}
	if !q.Refusals {
		return nil
	}
	// The database uses the index on refusals only if the text of the query has the index's condition.
	return r.remove(ctx, new(int), "formsvc_idempotency", "account_id = ? AND refused AND response_id IS NULL", r.account)
}

// remove removes the rows that match a condition, and adds their number to n.
func (r *erasure) remove(ctx context.Context, n *int, table, where string, args ...any) error {
	removed, err := Affected(r.build.NewDelete().Conn(r.c).TableExpr(table).Where(where, args...).Exec(ctx))
	*n += removed
	return err
}
