package postgres

import (
	"context"
	"database/sql"
	"slices"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to Postgres: a whole group is one statement.
type backend struct {
	shard int // the counter row that it updates
}

func (b *backend) dialect() bunstore.Dialect {
	return bunstore.Dialect{ManyWriters: true, Shard: b.shard, FeedOrder: "e.xact, e.seq"}
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

// Rows are sent as an array for each column, which Postgres reads faster than rows of JSON.
// Identifiers are texts, since the driver can't encode our type.
const fromEvents = `unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::uuid[], $4::text[]::uuid[],
    $5::bigint[], $6::bigint[], $7::text[], $8::bytea[])
    AS e(id, account_id, campaign_id, response_id, type, created_at, traceparent, payload)`

// eventArgs returns the arguments of fromEvents.
func eventArgs(list []*formsvc.Event) []any {
	return []any{
		column(list, func(e *formsvc.Event) string { return string(e.ID) }),
		column(list, func(e *formsvc.Event) string { return string(e.AccountID) }),
		column(list, func(e *formsvc.Event) string { return string(e.CampaignID) }),
		column(list, func(e *formsvc.Event) string { return string(e.ResponseID) }),
		column(list, bunstore.TypeOf),
		column(list, func(e *formsvc.Event) int64 { return e.CreatedAt.UnixMicro() }),
		column(list, func(e *formsvc.Event) string { return e.TraceParent }),
		column(list, func(e *formsvc.Event) []byte { return notNull(e.Payload) }),
	}
}

// column returns an array with a value of each row.
func column[R, V any](rows []R, value func(R) V) []V {
	values := make([]V, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

const insertEvents = `WITH ev AS (SELECT * FROM ` + fromEvents + `), ` + writeEvents + listening + `
SELECT EXISTS (SELECT FROM queued)`

// InsertEvents implements bunstore.Backend.
func (*backend) InsertEvents(ctx context.Context, c bun.IConn, list []formsvc.Event) (wake bool, err error) {
	events := make([]*formsvc.Event, len(list))
	for i := range list {
		events[i] = &list[i]
	}
	return wake, c.QueryRowContext(ctx, insertEvents, eventArgs(events)...).Scan(&wake)
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
  SELECT * FROM unnest($10::text[]::uuid[], $11::text[]::uuid[], $12::text[]::uuid[], $13::bigint[], $14::text[], $15::text[],
    $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bytea[],
    $25::bigint[], $26::text[])
  AS i(id, account_id, campaign_id, campaign_version, reference, status, email, first_name, last_name, answers, version,
    created_at, updated_at, completed_at, events, person, held)
)`
	// A subquery for each row, which a join would not be: it would read the whole table.
	records = `, record AS MATERIALIZED (
  SELECT r.*, (SELECT k.id FROM formsvc_idempotency AS k WHERE k.id = r.id) AS taken
  FROM unnest($27::text[]::uuid[], $28::bytea[], $29::text[]::uuid[], $30::bytea[], $31::boolean[], $32::text[]::uuid[],
      $33::text[]::uuid[], $34::bigint[], $35::bytea[])
    AS r(made, id, account_id, request, refused, response_id, campaign_id, created_at, result)
)`
	insertResponses = `, inserted AS (
  INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, first_name, last_name, answers,
    version, created_at, updated_at, completed_at, events, person, held)
  SELECT i.id, i.account_id, i.campaign_id, i.reference, i.status, i.email, i.first_name, i.last_name, i.answers,
    i.version, i.created_at, i.updated_at, i.completed_at, i.events, i.person, i.held
  FROM input AS i JOIN formsvc_campaigns AS c
    ON c.id = i.campaign_id AND c.account_id = i.account_id AND c.version = i.campaign_version`
	notTaken = `
  WHERE i.id NOT IN (SELECT r.made FROM record AS r WHERE r.taken IS NOT NULL)`
	endInsert = `
  RETURNING id, campaign_id
)`
	remember = `, remembered AS (
  INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, campaign_id, created_at)
  SELECT r.id, r.account_id, r.request, r.refused, r.result, r.response_id, r.campaign_id, r.created_at
  FROM record AS r WHERE r.made IN (SELECT id FROM inserted)
)`
	addToResponses = `, counted AS (
  INSERT INTO formsvc_counters AS n (campaign_id, shard, responses)
  SELECT campaign_id, $9::integer, count(*) FROM inserted GROUP BY campaign_id ORDER BY campaign_id
  ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses
), ev AS (
  SELECT e.* FROM ` + fromEvents + ` WHERE e.response_id IN (SELECT id FROM inserted)
), ` + writeCreated + listening + `
SELECT r.id, EXISTS (SELECT FROM queued) FROM inserted AS r`
)

// responseArgs returns the arguments of input.
func responseArgs(list []*bunstore.Creation) []any {
	return []any{
		column(list, func(n *bunstore.Creation) string { return string(n.Response.ID) }),
		column(list, func(n *bunstore.Creation) string { return string(n.Response.AccountID) }),
		column(list, func(n *bunstore.Creation) string { return string(n.Response.CampaignID) }),
		column(list, func(n *bunstore.Creation) int64 { return n.CampaignVersion }),
		column(list, func(n *bunstore.Creation) string { return n.Response.Reference }),
		column(list, func(n *bunstore.Creation) string { return n.Response.Status }),
		column(list, func(n *bunstore.Creation) string { return n.Response.User.Email }),
		column(list, func(n *bunstore.Creation) string { return n.Response.User.FirstName }),
		column(list, func(n *bunstore.Creation) string { return n.Response.User.LastName }),
		column(list, func(n *bunstore.Creation) string { return n.Response.Answers.JSON() }),
		column(list, func(n *bunstore.Creation) int64 { return n.Response.Version }),
		column(list, func(n *bunstore.Creation) int64 { return n.Response.CreatedAt.UnixMicro() }),
		column(list, func(n *bunstore.Creation) int64 { return n.Response.UpdatedAt.UnixMicro() }),
		column(list, func(n *bunstore.Creation) int64 { return n.Response.CompletedAt.UnixMicro() }),
		column(list, func(n *bunstore.Creation) []byte { return bunstore.EventIDs(&n.Change) }),
		column(list, func(n *bunstore.Creation) *int64 {
			return bunstore.Person(n.Response.CampaignID, n.Response.User.Email)
		}),
		column(list, func(n *bunstore.Creation) string { return string(n.Response.Held) }),
	}
}

// recordArgs returns the arguments of records, for creations that have one.
func recordArgs(list []*bunstore.Creation) []any {
	record := func(n *bunstore.Creation) *formsvc.IdempotencyRecord { return n.Change.Idempotency }
	return []any{
		column(list, func(n *bunstore.Creation) string { return string(n.Response.ID) }),
		column(list, func(n *bunstore.Creation) []byte { return bunstore.RecordHash(record(n).AccountID, record(n).Key) }),
		column(list, func(n *bunstore.Creation) string { return string(record(n).AccountID) }),
		column(list, func(n *bunstore.Creation) []byte { return record(n).Request[:] }),
		column(list, func(n *bunstore.Creation) bool { return record(n).Refused }),
		column(list, func(n *bunstore.Creation) *string { return nullable(record(n).ResponseID) }),
		column(list, func(n *bunstore.Creation) *string { return nullable(n.Returned()) }),
		column(list, func(n *bunstore.Creation) int64 { return record(n).CreatedAt.UnixMicro() }),
		column(list, func(n *bunstore.Creation) []byte {
			if n.Returned() != "" {
				return nil
			}
			return notNull(record(n).Result)
		}),
	}
}

// CreateResponses implements bunstore.Backend. It needs no transaction, because it is one
// statement.
func (b *backend) CreateResponses(
	ctx context.Context, c bun.IConn, list []*bunstore.Creation,
) (written []bool, wake bool, err error) {
	var (
		events []*formsvc.Event
		keyed  []*bunstore.Creation
	)
	for _, n := range list {
		for i := range n.Change.Events {
			events = append(events, &n.Change.Events[i])
		}
		if n.Change.Idempotency != nil {
			keyed = append(keyed, n)
		}
	}
	statement, args := createResponses, slices.Concat(eventArgs(events), []any{b.shard}, responseArgs(list))
	if len(keyed) > 0 {
		statement, args = createKeyedResponses, append(args, recordArgs(keyed)...)
	}
	inserted := make(map[formsvc.ID]bool, len(list))
	_, err = bunstore.List(ctx, c, func(rows *sql.Rows, id *string) error {
		err := rows.Scan(id, &wake)
		inserted[formsvc.ID(*id)] = true
		return err
	}, statement, args...)
	written = make([]bool, len(list))
	for i, n := range list {
		written[i] = inserted[n.Response.ID]
	}
	return written, wake, err
}

// nullable returns NULL for an empty identifier.
func nullable(id formsvc.ID) *string {
	if id == "" {
		return nil
	}
	return new(string(id))
}

// notNull returns b, or empty bytes instead of nil, which the driver would send as NULL.
func notNull(b []byte) []byte { return append([]byte{}, b...) }
