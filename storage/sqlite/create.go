package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to SQLite. There is one writer at a time, so nothing needs
// locking. Rows are written one by one: a call costs little, and the driver looks for each
// argument among all of its statement, so many rows in one statement are slower.
type backend struct {
	schema    int // the number of steps
	responses insertion[*bunstore.Creation]
	events    insertion[bunstore.EventRow]
}

// newBackend returns the backend, which is built once.
var newBackend = sync.OnceValue(func() *backend { //nolint:gochecknoglobals // immutable
	responses := newInsertion("formsvc_responses", bunstore.ResponseColumns(), " WHERE NOT EXISTS (SELECT 1 FROM formsvc_idempotency WHERE id = ?)"+
		" ON CONFLICT (call) WHERE call IS NOT NULL DO NOTHING")
	responses.columns = append(responses.columns, bunstore.Column[*bunstore.Creation]{Value: (*bunstore.Creation).Call}) // of the condition
	return &backend{len(bunstore.Migrations(migrationFiles, true)), responses, newInsertion("formsvc_events", bunstore.EventColumns(), "")}
})

// An insertion inserts rows of a table.
type insertion[R any] struct {
	columns   []bunstore.Column[R]
	statement string
}

func newInsertion[R any](table string, columns []bunstore.Column[R], end string) insertion[R] {
	return insertion[R]{columns, "INSERT INTO " + table + " (" + bunstore.Names(columns, "") + ") SELECT ?" + strings.Repeat(", ?", len(columns)-1) + end}
}

func (i *insertion[R]) add(ctx context.Context, c bun.IConn, row R) (rows int, err error) {
	return bunstore.Affected(c.ExecContext(ctx, i.statement, bunstore.Args(i.columns, row, raw)...))
}

func (b *backend) dialect() bunstore.Dialect {
	const inMetadata = "EXISTS (SELECT 1 FROM json_each(r.metadata) AS m WHERE m.key = ? AND m.value = ?)" // a path can't have every name
	list := func(ids []bunstore.ID) any {
		text, _ := json.Marshal(ids) // of valid identifiers never fails
		return string(text)
	}
	return bunstore.Dialect{Among: "IN (SELECT unhex(value, '-') FROM json_each($1))", AsList: list, Schema: b.schema, FeedOrder: "e.seq", BinaryIDs: true, Metadata: inMetadata, By: func(table, index string) string {
		if index == "formsvc_responses_person" {
			return byPerson
		}
		return table + " INDEXED BY " + index
	}}
}

// byPerson looks into each part of the index, see the schema.
const byPerson = `(
  WITH RECURSIVE p(part) AS (
    SELECT (SELECT max(seq) FROM formsvc_responses) >> 12 UNION ALL SELECT part - 1 FROM p WHERE part > 0
  ) SELECT part FROM p
) AS p CROSS JOIN formsvc_responses AS r INDEXED BY formsvc_responses_person ON r.seq >> 12 = p.part`

// CreateResponses implements bunstore.Backend.
func (b *backend) CreateResponses(
	ctx context.Context, c bun.IConn, list []*bunstore.Creation,
) (written []bool, wake bool, err error) {
	g := group{
		backend: b, c: c, campaigns: make(map[formsvc.CampaignKey]*campaign, 1), listeners: make(map[formsvc.ID][]listener, 1),
		counts: make(map[formsvc.ID]int, 1),
	}
	written = make([]bool, len(list))
	for i, n := range list {
		if written[i], err = g.create(ctx, n); err != nil {
			return nil, false, err
		}
	}
	return written, g.wake, g.count(ctx)
}

// InsertEvents implements bunstore.Backend.
func (b *backend) InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error) {
	g := group{backend: b, c: c, listeners: make(map[formsvc.ID][]listener, 1)}
	for i := range events {
		if err := g.event(ctx, bunstore.EventRow{Event: &events[i], About: events[i].ResponseID}); err != nil {
			return false, err
		}
	}
	return g.wake, nil
}

// A group is what the writes of a transaction share. It must not outlive it.
type group struct {
	*backend

	c         bun.IConn
	campaigns map[formsvc.CampaignKey]*campaign
	listeners map[formsvc.ID][]listener // of an account
	counts    map[formsvc.ID]int        // of new responses of a campaign
	wake      bool                      // whether there are deliveries
}

type campaign struct {
	version int64      // 0: there is no such campaign
	newest  formsvc.ID // the highest identifier of its responses, or ""
}

type listener struct {
	id       formsvc.ID
	events   int64
	campaign formsvc.ID
}

const addStatus = "INSERT INTO formsvc_statuses (campaign_id, status, responses) VALUES (?, ?, 1) " +
	"ON CONFLICT (campaign_id, status) DO UPDATE SET responses = responses + 1"

// create writes a response with what belongs to it, unless its campaign has another
// version or its idempotency key is taken.
func (g *group) create(ctx context.Context, n *bunstore.Creation) (written bool, err error) {
	r := &n.Response
	of, err := g.campaign(ctx, formsvc.CampaignKey{AccountID: r.AccountID, ID: r.CampaignID})
	if err != nil || of.version == 0 || of.version != n.CampaignVersion {
		return false, err
	}
	if r.ID <= of.newest { // most are new by their time
		if err := g.c.QueryRowContext(ctx, selectTaken, raw(r.CampaignID), raw(r.ID)).Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
			return false, cmp.Or(err, formsvc.ErrConflict)
		}
	}
	of.newest = max(of.newest, r.ID)
	if fresh, err := g.responses.add(ctx, g.c, n); err != nil || fresh == 0 {
		return false, err
	}
	if r.Status != formsvc.StatusPending { // held or imported
		_, err = g.c.ExecContext(ctx, addStatus, raw(r.CampaignID), r.Status)
	}
	for i := range n.Change.Events {
		if err == nil {
			err = g.event(ctx, bunstore.EventRow{Event: &n.Change.Events[i]})
		}
	}
	g.counts[r.CampaignID]++
	return err == nil, err
}

const (
	selectCampaign = "SELECT c.version, (SELECT max(r.id) FROM formsvc_responses AS r WHERE r.campaign_id = c.id) " +
		"FROM formsvc_campaigns AS c WHERE c.id = ? AND c.account_id = ?"
	selectTaken = "SELECT 1 FROM formsvc_responses WHERE campaign_id = ? AND id = ?"
)

func (g *group) campaign(ctx context.Context, key formsvc.CampaignKey) (*campaign, error) {
	if of := g.campaigns[key]; of != nil {
		return of, nil
	}
	of := new(campaign)
	err := g.c.QueryRowContext(ctx, selectCampaign, raw(key.ID), raw(key.AccountID)).Scan(&of.version, (*bunstore.ID)(&of.newest))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	g.campaigns[key] = of
	return of, nil
}

// count adds the new responses to the counters.
func (g *group) count(ctx context.Context) error {
	for campaign, n := range g.counts {
		if _, err := g.c.ExecContext(ctx, bunstore.AddCount, raw(campaign), 0, n); err != nil {
			return err
		}
	}
	return nil
}

const insertDelivery = "INSERT INTO formsvc_deliveries (webhook_id, id, event_id, event_type, size, kind, state, attempts, lease, " +
	"due_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, ?, ?, ?)"

// event writes an event, and a delivery for every webhook that listens. None does for a
// test.
func (g *group) event(ctx context.Context, e bunstore.EventRow) error {
	stored, at := bunstore.TypeOf(e.Event), e.CreatedAt.UnixMicro()
	_, err := g.events.add(ctx, g.c, e)
	if err != nil || e.Test {
		return err
	}
	listeners, err := g.listenersOf(ctx, e.AccountID)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		if l.events&bunstore.ListenBits(e.Event) == 0 || (l.campaign != "" && l.campaign != e.CampaignID) {
			continue
		}
		g.wake = true
		if _, err := g.c.ExecContext(ctx, insertDelivery, raw(l.id), raw(formsvc.DeliveryID(e.ID, l.id)), raw(e.ID),
			stored, len(e.Payload), at, at, bunstore.Never); err != nil {
			return err
		}
	}
	return nil
}

const selectListeners = "SELECT id, events, campaign_id FROM formsvc_webhooks " +
	"WHERE account_id = ? AND NOT disabled AND NOT daily ORDER BY id"

func (g *group) listenersOf(ctx context.Context, account formsvc.ID) ([]listener, error) {
	list, known := g.listeners[account]
	if known {
		return list, nil
	}
	list, err := bunstore.List(ctx, g.c, func(rows *sql.Rows, l *listener) error {
		return rows.Scan((*bunstore.ID)(&l.id), &l.events, (*bunstore.ID)(&l.campaign))
	}, selectListeners, raw(account))
	g.listeners[account] = list
	return list, err
}

// raw returns the bytes of an identifier, or nil for none.
func raw(id formsvc.ID) any {
	if id == "" {
		return nil
	}
	return bunstore.ID(id).Bytes()
}
