package postgres

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to Postgres: a whole group is one statement.
type backend struct {
	shard int // the counter row that it updates
}

func (b *backend) dialect() bunstore.Dialect {
	return bunstore.Dialect{
		ManyWriters: true, Shard: b.shard, FeedOrder: "e.xact, e.seq", FoldedEmail: `lower(r.email COLLATE "C")`, FoldedIndex: true,
	}
}

// position is the position of an event in the feed; see feed.go. It is the number of the
// event's transaction, or of the last one that had ended when the statement began,
// whichever is higher. Events with the same position are in the order of their sequence
// numbers.
const position = `(SELECT greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)
  + f."offset" FROM formsvc_feed AS f WHERE f.id = 1)`

// writeEvents is the part of a statement that writes the events of the CTE ev;
// writeCreated is that for events of a response created by the same statement.
const (
	writeEvents  = insertEvent + `, e.response_id` + endEvents
	writeCreated = insertEvent + `, NULL::uuid` + endEvents

	insertEvent = `
written AS (
  INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, xact, type, created_at, payload, traceparent, about)
  SELECT e.id, e.account_id, e.campaign_id, e.response_id, ` + position + `, e.type, e.created_at, e.payload,
    nullif(e.traceparent, '')`
	endEvents = ` FROM ev AS e
)`
)

// listening writes a delivery of each event for every webhook that listens.
const listening = `, queued AS (
  INSERT INTO formsvc_deliveries (webhook_id, id, event_id, event_type, size, kind, state, attempts, lease,
    due_at, created_at, updated_at)
  SELECT w.id, formsvc_delivery_id(e.id, w.id), e.id, e.type, octet_length(e.payload), 0, 0, 0, 0,
    e.created_at, e.created_at, -62135596800000000 -- the zero time: no attempt has ended
  FROM ev AS e JOIN formsvc_webhooks AS w ON w.account_id = e.account_id AND NOT w.disabled
    AND w.events & e.type <> 0 AND e.type & 65536 = 0 AND (w.campaign_id IS NULL OR w.campaign_id = e.campaign_id)
  RETURNING event_id
)`

// Rows are sent as JSON, one argument for each kind: the driver would need an array for every
// column. Bytes are an array beside them.
const fromEvents = `ROWS FROM (json_to_recordset($1::text::json) AS (id uuid, account_id uuid, campaign_id uuid, response_id uuid,
      type bigint, created_at bigint, traceparent text), unnest($2::bytea[]))
    AS e(id, account_id, campaign_id, response_id, type, created_at, traceparent, payload)`

// An eventRow is an event as fromEvents reads it.
type eventRow struct {
	ID          formsvc.ID `json:"id"`
	AccountID   formsvc.ID `json:"account_id"`
	CampaignID  formsvc.ID `json:"campaign_id"`
	ResponseID  formsvc.ID `json:"response_id"`
	Type        int64      `json:"type"`
	CreatedAt   int64      `json:"created_at"`
	TraceParent string     `json:"traceparent,omitempty"`
}

// events are the arguments of fromEvents.
type events struct {
	rows     []eventRow
	payloads [][]byte
}

func (l *events) add(list []formsvc.Event) {
	for i := range list {
		e := &list[i]
		l.rows = append(l.rows, eventRow{
			ID: e.ID, AccountID: e.AccountID, CampaignID: e.CampaignID, ResponseID: e.ResponseID,
			Type: bunstore.TypeOf(e), CreatedAt: e.CreatedAt.UnixMicro(), TraceParent: e.TraceParent,
		})
		l.payloads = append(l.payloads, notNull(e.Payload))
	}
}

const insertEvents = `WITH ev AS (SELECT * FROM ` + fromEvents + `), ` + writeEvents + listening + `
SELECT EXISTS (SELECT FROM queued)`

// InsertEvents implements bunstore.Backend.
func (*backend) InsertEvents(ctx context.Context, c bun.IConn, list []formsvc.Event) (wake bool, err error) {
	var l events
	l.add(list)
	return wake, c.QueryRowContext(ctx, insertEvents, rowSet(l.rows), l.payloads).Scan(&wake)
}

// createResponses writes a whole group in one statement, which is a transaction by
// itself: one round trip. It leaves out a response, with all that belongs to it, if its
// campaign has another version. The result has the identifiers of the responses written.
//
// createKeyedResponses also leaves out responses whose idempotency record exists. If
// another transaction commits such a record meanwhile, the statement fails.
const (
	createResponses      = `WITH ` + input + insertResponses + endInsert + addToResponses
	createKeyedResponses = `WITH ` + input + records + insertResponses + notTaken + endInsert + remember + addToResponses

	input = `input AS (
  SELECT * FROM json_to_recordset($3::text::json) AS i(id uuid, account_id uuid, campaign_id uuid, campaign_version bigint,
    reference text, status text, email text, first_name text, last_name text, answers text, version bigint,
    created_at bigint, updated_at bigint, completed_at bigint, events text)
)`
	// A subquery for each row, which a join would not be: it would read the whole table.
	records = `, record AS MATERIALIZED (
  SELECT r.*, (SELECT k.id FROM formsvc_idempotency AS k WHERE k.id = r.id) AS taken
  FROM ROWS FROM (json_to_recordset($5::text::json) AS (made uuid, id bytea, account_id uuid, request bytea,
      refused boolean, response_id uuid, created_at bigint), unnest($6::bytea[]))
    AS r(made, id, account_id, request, refused, response_id, created_at, result)
)`
	insertResponses = `, inserted AS (
  INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, first_name, last_name, answers,
    version, created_at, updated_at, completed_at, events)
  SELECT i.id, i.account_id, i.campaign_id, i.reference, i.status, i.email, i.first_name, i.last_name, i.answers,
    i.version, i.created_at, i.updated_at, i.completed_at, i.events
  FROM input AS i JOIN formsvc_campaigns AS c
    ON c.id = i.campaign_id AND c.account_id = i.account_id AND c.version = i.campaign_version`
	notTaken = `
  WHERE i.id NOT IN (SELECT r.made FROM record AS r WHERE r.taken IS NOT NULL)`
	endInsert = `
  RETURNING id, campaign_id
)`
	remember = `, remembered AS (
  INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, created_at)
  SELECT r.id, r.account_id, r.request, r.refused, r.result, r.response_id, r.created_at
  FROM record AS r WHERE r.made IN (SELECT id FROM inserted)
)`
	addToResponses = `, counted AS (
  INSERT INTO formsvc_counters AS n (campaign_id, shard, responses)
  SELECT campaign_id, $4::integer, count(*) FROM inserted GROUP BY campaign_id ORDER BY campaign_id
  ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses
), ev AS (
  SELECT e.* FROM ` + fromEvents + ` WHERE e.response_id IN (SELECT id FROM inserted)
), ` + writeCreated + listening + `
SELECT r.id, EXISTS (SELECT FROM queued) FROM inserted AS r`
)

// A responseRow is a response as createResponses reads it.
type responseRow struct {
	ID              formsvc.ID `json:"id"`
	AccountID       formsvc.ID `json:"account_id"`
	CampaignID      formsvc.ID `json:"campaign_id"`
	CampaignVersion int64      `json:"campaign_version"`
	Reference       string     `json:"reference"`
	Status          string     `json:"status"`
	Email           string     `json:"email"`
	FirstName       string     `json:"first_name"`
	LastName        string     `json:"last_name"`
	Answers         string     `json:"answers"`
	Version         int64      `json:"version"`
	CreatedAt       int64      `json:"created_at"`
	UpdatedAt       int64      `json:"updated_at"`
	CompletedAt     int64      `json:"completed_at"`
	Events          string     `json:"events"`
}

// A recordRow is the idempotency record of a response. ResponseID is null if the record
// isn't about one.
type recordRow struct {
	Made       formsvc.ID  `json:"made"` // the response
	ID         bytea       `json:"id"`
	AccountID  formsvc.ID  `json:"account_id"`
	Request    bytea       `json:"request"`
	Refused    bool        `json:"refused"`
	ResponseID *formsvc.ID `json:"response_id"`
	CreatedAt  int64       `json:"created_at"`
}

// CreateResponses implements bunstore.Backend. It needs no transaction, because it is one
// statement.
func (b *backend) CreateResponses(
	ctx context.Context, c bun.IConn, list []*bunstore.Creation,
) (written []bool, wake bool, err error) {
	var (
		made    events
		rows    = make([]responseRow, len(list))
		keyed   []recordRow
		results [][]byte
	)
	for i, n := range list {
		r := &n.Response
		rows[i] = responseRow{
			ID: r.ID, AccountID: r.AccountID, CampaignID: r.CampaignID, CampaignVersion: n.CampaignVersion,
			Reference: r.Reference, Status: r.Status, Email: r.User.Email, FirstName: r.User.FirstName, LastName: r.User.LastName,
			Answers: r.Answers.JSON(), Version: r.Version, CreatedAt: r.CreatedAt.UnixMicro(), UpdatedAt: r.UpdatedAt.UnixMicro(),
			CompletedAt: r.CompletedAt.UnixMicro(), Events: bunstore.EventIDs(&n.Change),
		}
		made.add(n.Change.Events)
		if k := n.Change.Idempotency; k != nil {
			row := recordRow{
				Made: r.ID, ID: bunstore.RecordHash(k.AccountID, k.Key), AccountID: k.AccountID, Request: k.Request[:],
				Refused: k.Refused, CreatedAt: k.CreatedAt.UnixMicro(),
			}
			if k.ResponseID != "" {
				row.ResponseID = &k.ResponseID
			}
			keyed, results = append(keyed, row), append(results, notNull(k.Result))
		}
	}
	statement, args := createResponses, []any{rowSet(made.rows), made.payloads, rowSet(rows), b.shard}
	if len(keyed) > 0 {
		statement, args = createKeyedResponses, append(args, rowSet(keyed), results)
	}
	inserted := make(map[formsvc.ID]bool, len(list))
	_, err = bunstore.List(ctx, c, func(rows *sql.Rows, id *string) error {
		err := rows.Scan(id, &wake)
		inserted[formsvc.ID(*id)] = true
		return err
	}, statement, args...)
	written = make([]bool, len(list))
	for i := range rows {
		written[i] = inserted[rows[i].ID]
	}
	return written, wake, err
}

// rowSet returns rows as a JSON array. They have only texts and numbers, which can always be encoded.
func rowSet[T any](rows []T) string {
	text, _ := json.Marshal(rows) //nolint:errchkjson // see above
	if rows == nil {
		return "[]"
	}
	return string(text)
}

// bytea is bytes in the server's notation.
type bytea []byte

// MarshalText implements encoding.TextMarshaler.
func (b bytea) MarshalText() ([]byte, error) { return hex.AppendEncode([]byte(`\x`), b), nil }

// notNull returns b, or empty bytes instead of nil, which the driver would send as NULL.
func notNull(b []byte) []byte { return append([]byte{}, b...) }
