package sqlite

import (
	"context"
	"database/sql"
	"errors"

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
			"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ""),
		events: newBulk("INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, type, created_at, about, payload, "+
			"traceparent) VALUES ", "(?, ?, ?, ?, ?, ?, ?, ?, ?)", ""),
		deliveries: newBulk("INSERT INTO formsvc_deliveries (webhook_id, id, event_id, event_type, size, kind, state, "+
			"attempts, lease, due_at, created_at, updated_at) VALUES ", "(?, ?, ?, ?, ?, 0, 0, 0, 0, ?, ?, ?)", ""),
		records: newBulk(cutValues(bunstore.InsertRecord + " RETURNING id")),
		attempts: newBulk("INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer) "+
			"VALUES ", "(?, ?, ?, ?, ?, ?, ?)", ""),
	}
}

// CreateResponses implements bunstore.Backend.
func (b *backend) CreateResponses(
	ctx context.Context, c bun.IConn, list []*bunstore.Creation,
) (written []bool, wake bool, err error) {
	written, err = current(ctx, c, list)
	if err == nil {
		err = b.insertRecords(ctx, c, list, written)
	}
	if err != nil {
		return nil, false, err
	}
	rows := b.responses.rows(len(list))
	counts := make(map[formsvc.ID]int, 1)
	w := eventWriter{backend: b, c: c, created: true}
	for i, n := range list {
		if !written[i] {
			continue
		}
		r := &n.Response
		rows = append(rows, string(r.ID), string(r.AccountID), string(r.CampaignID),
			r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(), r.Version,
			r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), r.CompletedAt.UnixMicro(), bunstore.EventIDs(&n.Change))
		counts[r.CampaignID]++
		if r.Status != formsvc.StatusPending { // imported
			if _, err := c.ExecContext(ctx, addStatus, string(r.CampaignID), r.Status); err != nil {
				return nil, false, err
			}
		}
		if err := w.add(ctx, n.Change.Events); err != nil {
			return nil, false, err
		}
	}
	if err := b.responses.insert(ctx, c, rows); err != nil {
		return nil, false, err
	}
	for campaign, n := range counts {
		if _, err := c.ExecContext(ctx, addCount, string(campaign), n); err != nil {
			return nil, false, err
		}
	}
	wake, err = w.flush(ctx)
	return written, wake, err
}

// current reports which responses are for a campaign that has the version they were made
// for.
func current(ctx context.Context, c bun.IConn, list []*bunstore.Creation) ([]bool, error) {
	versions := make(map[formsvc.CampaignKey]int64, 1)
	are := make([]bool, len(list))
	for i, n := range list {
		key := formsvc.CampaignKey{AccountID: n.Response.AccountID, ID: n.Response.CampaignID}
		version, known := versions[key]
		if !known {
			err := c.QueryRowContext(ctx, selectVersion, string(key.ID), string(key.AccountID)).Scan(&version)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, err
			}
			versions[key] = version
		}
		are[i] = version != 0 && version == n.CampaignVersion
	}
	return are, nil
}

// insertRecords writes the idempotency records of the good ones. Those whose key is taken
// are good no more.
func (b *backend) insertRecords(ctx context.Context, c bun.IConn, list []*bunstore.Creation, good []bool) error {
	var rows []any
	for i, n := range list {
		if r := n.Change.Idempotency; r != nil && good[i] {
			rows = append(rows, bunstore.RecordArgs(r)...)
		}
	}
	fresh := make(map[string]bool)
	err := b.records.each(rows, func(statement string, args []any) error {
		hashes, err := bunstore.Strings(ctx, c, statement, args...)
		for _, hash := range hashes {
			fresh[hash] = true
		}
		return err
	})
	for i, n := range list {
		if r := n.Change.Idempotency; r != nil && good[i] {
			hash := string(bunstore.RecordHash(r.AccountID, r.Key))
			good[i] = fresh[hash]
			delete(fresh, hash) // a later one of the group is a repetition
		}
	}
	return err
}

// InsertEvents implements bunstore.Backend.
func (b *backend) InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error) {
	w := eventWriter{backend: b, c: c}
	if err := w.add(ctx, events); err != nil {
		return false, err
	}
	return w.flush(ctx)
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

// add collects events, and a delivery of each for every webhook that listens.
func (w *eventWriter) add(ctx context.Context, events []formsvc.Event) error {
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
			return err
		}
		for _, l := range listeners {
			if e.Test || l.events&bit == 0 || (l.campaign != "" && l.campaign != e.CampaignID) {
				continue
			}
			w.deliveries = append(w.deliveries, string(l.id), string(formsvc.DeliveryID(e.ID, l.id)), string(e.ID),
				bunstore.TypeOf(e), len(e.Payload), at, at, bunstore.Never)
		}
	}
	return nil
}

// flush writes what was collected, and reports whether there are deliveries.
func (w *eventWriter) flush(ctx context.Context) (wake bool, err error) {
	if err := w.backend.events.insert(ctx, w.c, w.events); err != nil {
		return false, err
	}
	return len(w.deliveries) > 0, w.backend.deliveries.insert(ctx, w.c, w.deliveries)
}

func (w *eventWriter) of(ctx context.Context, account formsvc.ID) ([]listener, error) {
	list, known := w.listeners[account]
	if known {
		return list, nil
	}
	list, err := bunstore.List(ctx, w.c, func(rows *sql.Rows, l *listener) error {
		return rows.Scan((*string)(&l.id), &l.events, (*string)(&l.campaign))
	}, selectListeners, string(account))
	if w.listeners == nil {
		w.listeners = make(map[formsvc.ID][]listener, 1)
	}
	w.listeners[account] = list
	return list, err
}
