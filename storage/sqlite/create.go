package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to SQLite. There is one writer at a time, so nothing needs
// locking, and statements are prepared once.
type backend struct {
	responses, events, deliveries, attempts, records bulk
	finish                                           string // see newFinish
}

func (*backend) dialect() bunstore.Dialect {
	return bunstore.Dialect{FeedOrder: "e.seq", IndexedBy: "INDEXED BY", FoldedEmail: "lower(r.email)"} // which folds only ASCII
}

const (
	selectVersion = "SELECT version FROM formsvc_campaigns WHERE id = ? AND account_id = ?"

	addCount = "INSERT INTO formsvc_counters (campaign_id, shard, responses) VALUES (?, 0, ?) " +
		"ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = responses + excluded.responses"

	addStatus = "INSERT INTO formsvc_statuses (campaign_id, status, responses) VALUES (?, ?, 1) " +
		"ON CONFLICT (campaign_id, status) DO UPDATE SET responses = responses + 1"

	selectListeners = "SELECT id, events, coalesce(campaign_id, '') FROM formsvc_webhooks " +
		"WHERE account_id = ? AND NOT disabled ORDER BY id"
)

// newBackend returns a backend with its statements.
func newBackend() *backend {
	return &backend{
		finish: newFinish(),
		responses: newBulk("INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, "+
			"first_name, last_name, answers, version, created_at, updated_at, completed_at, events) VALUES ",
			"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", " ON CONFLICT DO NOTHING"),
		events: newBulk("INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, type, created_at, about, payload, "+
			"traceparent) VALUES ", "(?, ?, ?, ?, ?, ?, ?, ?, ?)", ""),
		deliveries: newBulk("INSERT INTO formsvc_deliveries (webhook_id, id, event_id, event_type, size, kind, state, "+
			"attempts, lease, due_at, created_at, updated_at) VALUES ", "(?, ?, ?, ?, ?, 0, 0, 0, 0, ?, ?, ?)", ""),
		records: newBulk(cutValues(bunstore.InsertRecord)),
		attempts: newBulk("INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer) "+
			"VALUES ", "(?, ?, ?, ?, ?, ?, ?)", ""),
	}
}

// CreateResponses implements bunstore.Backend.
func (b *backend) CreateResponses(ctx context.Context, c bun.IConn, group []*bunstore.Unit) error {
	versions := make(map[formsvc.CampaignKey]int64, 1)
	good := make([]*bunstore.Unit, 0, len(group))
	for _, u := range group {
		r := &u.Creation.Response
		version, err := campaignVersion(ctx, c, versions, formsvc.CampaignKey{AccountID: r.AccountID, ID: r.CampaignID})
		switch {
		case err != nil:
			return err
		case version == 0:
			u.Err = formsvc.ErrNotFound
		case version != u.Creation.CampaignVersion:
			u.Err = formsvc.ErrStale
		default:
			good = append(good, u)
		}
	}
	good, err := leaveRepeated(ctx, c, good)
	if err != nil {
		return err
	}
	inserted, err := b.insertResponses(ctx, c, good, len(group) == 1)
	if err != nil {
		return err
	}
	if err := b.insertRecords(ctx, c, inserted); err != nil {
		return err
	}
	counts := make(map[formsvc.ID]int, 1)
	w := eventWriter{backend: b, c: c, created: true}
	for _, u := range inserted {
		r := &u.Creation.Response
		counts[r.CampaignID]++
		if r.Status != formsvc.StatusPending { // imported
			if _, err := c.ExecContext(ctx, addStatus, string(r.CampaignID), r.Status); err != nil {
				return err
			}
		}
		if u.Wake, err = w.add(ctx, u.Creation.Change.Events); err != nil {
			return err
		}
	}
	for campaign, n := range counts {
		if _, err := c.ExecContext(ctx, addCount, string(campaign), n); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// errSomeLeftOut fails a group in which a reference or an identifier is taken. Its units
// are then tried alone, so that each gets its own outcome. It is rarer than once in a
// million responses.
var errSomeLeftOut = errors.New("sqlite: some responses of a group conflict")

// insertResponses writes the responses of the units and returns the units whose response
// was written. A unit that isn't alone in its group may have made another one a repetition,
// which it isn't if this one fails.
func (b *backend) insertResponses(ctx context.Context, c bun.IConn, units []*bunstore.Unit, alone bool) ([]*bunstore.Unit, error) {
	rows := b.responses.rows(len(units))
	for _, u := range units {
		r := &u.Creation.Response
		rows = append(rows, string(r.ID), string(r.AccountID), string(r.CampaignID),
			r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(), r.Version,
			r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), r.CompletedAt.UnixMicro(), bunstore.EventIDs(&u.Creation.Change))
	}
	n, err := b.responses.insert(ctx, c, rows)
	switch {
	case err != nil || n == len(units):
		return units, err
	case !alone:
		return nil, errSomeLeftOut
	}
	units[0].Err = formsvc.ErrConflict
	return nil, nil
}

// findRecords looks for idempotency records, bulkRows at a time.
const findRecords = "SELECT id FROM formsvc_idempotency WHERE id IN (?, ?, ?, ?, ?, ?, ?, ?)"

// leaveRepeated returns the units whose idempotency key is new, or that have none, and
// sets the error of the others. No other transaction writes meanwhile.
func leaveRepeated(ctx context.Context, c bun.IConn, units []*bunstore.Unit) ([]*bunstore.Unit, error) {
	if !bunstore.Keyed(units) {
		return units, nil
	}
	hashes := make([]any, 0, len(units))
	for _, u := range units {
		if r := u.Creation.Change.Idempotency; r != nil {
			hashes = append(hashes, bunstore.RecordHash(r.AccountID, r.Key))
		}
	}
	taken := make(map[string]bool, len(units))
	for some := range slices.Chunk(hashes, bulkRows) {
		for len(some) < bulkRows {
			some = append(slices.Clip(some), some[0])
		}
		found, err := bunstore.Strings(ctx, c, findRecords, some...)
		if err != nil {
			return nil, err
		}
		for _, hash := range found {
			taken[hash] = true
		}
	}
	good := units[:0:0]
	next := 0
	for _, u := range units {
		if u.Creation.Change.Idempotency != nil {
			hash, _ := hashes[next].([]byte)
			next++
			if taken[string(hash)] {
				u.Err = formsvc.ErrRepeated
				continue
			}
			taken[string(hash)] = true // a later one in the same group is a repetition
		}
		good = append(good, u)
	}
	return good, nil
}

// insertRecords writes the idempotency records of units, whose keys are new.
func (b *backend) insertRecords(ctx context.Context, c bun.IConn, units []*bunstore.Unit) error {
	if !bunstore.Keyed(units) {
		return nil
	}
	rows := b.records.rows(len(units))
	for _, u := range units {
		if r := u.Creation.Change.Idempotency; r != nil {
			rows = append(rows, bunstore.RecordArgs(r)...)
		}
	}
	n, err := b.records.insert(ctx, c, rows)
	if err == nil && n*b.records.columns != len(rows) {
		return errSomeLeftOut // without its record, a retry could create the response again
	}
	return err
}

// campaignVersion returns a campaign's version, or 0 if the campaign doesn't exist.
func campaignVersion(
	ctx context.Context, c bun.IConn, known map[formsvc.CampaignKey]int64, key formsvc.CampaignKey,
) (int64, error) {
	version, ok := known[key]
	if ok {
		return version, nil
	}
	err := c.QueryRowContext(ctx, selectVersion, string(key.ID), string(key.AccountID)).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	known[key] = version
	return version, nil
}

// InsertEvents implements bunstore.Backend.
func (b *backend) InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (bool, error) {
	w := eventWriter{backend: b, c: c}
	wake, err := w.add(ctx, events)
	if err != nil {
		return false, err
	}
	return wake, w.flush(ctx)
}

// appendEvent appends the columns of an event.
func appendEvent(rows []any, e *formsvc.Event, about any) []any {
	var trace any
	if e.TraceParent != "" {
		trace = e.TraceParent
	}
	return append(rows, string(e.ID), string(e.AccountID), string(e.CampaignID), string(e.ResponseID),
		bunstore.TypeOf(e), e.CreatedAt.UnixMicro(), about, notNull(e.Payload), trace)
}

// eventWriter collects events and their deliveries and writes them together. It reads an
// account's webhooks once, so it must not outlive the group it is created for.
type eventWriter struct {
	*backend

	c                  bun.IConn
	created            bool // whether the events are created with their responses
	listeners          map[formsvc.ID][]listener
	events, deliveries []any
}

type listener struct {
	id       formsvc.ID
	events   int64
	campaign formsvc.ID
}

// add collects events and reports whether any webhook listens.
func (w *eventWriter) add(ctx context.Context, events []formsvc.Event) (wake bool, err error) {
	for i := range events {
		e := &events[i]
		bit, at := bunstore.EventBit(e.Type), e.CreatedAt.UnixMicro()
		var about any
		if !w.created {
			about = string(e.ResponseID)
		}
		w.events = appendEvent(w.events, e, about)
		listeners, err := w.of(ctx, e.AccountID)
		if err != nil {
			return false, err
		}
		for _, l := range listeners {
			if e.Test || l.events&bit == 0 || (l.campaign != "" && l.campaign != e.CampaignID) {
				continue
			}
			w.deliveries = append(w.deliveries, string(l.id), string(formsvc.DeliveryID(e.ID, l.id)), string(e.ID),
				bunstore.TypeOf(e), len(e.Payload), at, at, bunstore.Never)
			wake = true
		}
	}
	return wake, nil
}

func (w *eventWriter) flush(ctx context.Context) error {
	if _, err := w.backend.events.insert(ctx, w.c, w.events); err != nil {
		return err
	}
	_, err := w.backend.deliveries.insert(ctx, w.c, w.deliveries)
	return err
}

func (w *eventWriter) of(ctx context.Context, account formsvc.ID) (list []listener, err error) {
	if list, ok := w.listeners[account]; ok {
		return list, nil
	}
	rows, err := w.c.QueryContext(ctx, selectListeners, string(account))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var l listener
		if err := rows.Scan((*string)(&l.id), &l.events, (*string)(&l.campaign)); err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	if w.listeners == nil {
		w.listeners = make(map[formsvc.ID][]listener, 1)
	}
	w.listeners[account] = list
	return list, rows.Err()
}
