package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to Postgres: a whole group is one statement.
type backend struct {
	*statements

	shard int // the counter row that it updates
}

func newBackend(shard int) *backend { return &backend{built(), shard} }

// built returns the statements, which are built once.
var built = sync.OnceValue(newStatements) //nolint:gochecknoglobals // immutable

type statements struct {
	schema    int // the number of steps
	responses arrays[*bunstore.Creation]
	events    arrays[bunstore.EventRow]

	insertEvents, create string
}

func (b *backend) dialect() bunstore.Dialect {
	return bunstore.Dialect{Schema: b.schema, ManyWriters: true, Shard: b.shard, FeedOrder: "e.xact, e.seq", Metadata: "r.metadata::jsonb ->> ? = ?",
		Among: "= ANY ($1::text[]::uuid[])", AsList: func(ids []bunstore.ID) any { return column(ids, func(id bunstore.ID) string { return string(id) }) }}
}

// position is the position of an event in the feed; see feed.go. It is the number of the
// event's transaction, or of the last one that had ended when the statement began,
// whichever is higher. Events with the same position are in the order of their sequence
// numbers.
const position = `(SELECT greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)
  + f."offset" FROM formsvc_feed AS f WHERE f.id = 1)`

// listening writes a delivery of each event for every webhook that listens.
const listening = `, queued AS (
  INSERT INTO formsvc_deliveries (webhook_id, id, event_id, event_type, size, kind, state, attempts, lease,
    due_at, created_at, updated_at)
  SELECT w.id, formsvc_delivery_id(e.id, w.id), e.id, e.type, octet_length(e.payload), 0, 0, 0, 0,
    e.created_at, e.created_at, -62135596800000000 -- the zero time: no attempt has ended
  FROM ev AS e JOIN formsvc_webhooks AS w ON w.account_id = e.account_id AND NOT w.disabled AND NOT w.daily
    AND w.events & e.listening <> 0 AND e.type & 65536 = 0 AND (w.campaign_id IS NULL OR w.campaign_id = e.campaign_id)
  RETURNING event_id
)`

// arrays sends rows as an array for each column, which Postgres reads faster than rows of JSON.
type arrays[R any] []bunstore.Column[R]

// from returns a table expression of the rows, whose parameters begin at first.
func (a arrays[R]) from(first int, alias string) string {
	list := make([]string, len(a))
	for i := range a {
		list[i] = fmt.Sprintf("$%d::%s[]", first+i, a[i].Type)
		if a[i].Type == "uuid" { // identifiers are sent as texts, since the driver can't encode our type
			list[i] = fmt.Sprintf("$%d::text[]::uuid[]", first+i)
		}
	}
	return "unnest(" + strings.Join(list, ", ") + ") AS " + alias + "(" + bunstore.Names(a, "") + ")"
}

// args returns the arguments of from.
func (a arrays[R]) args(rows []R) []any {
	args := make([]any, len(a))
	for i := range a {
		switch a[i].Type {
		case "uuid":
			args[i] = values(rows, func(row R) any {
				if id := a[i].Value(row).(formsvc.ID); id != "" {
					return string(id)
				}
				return nil
			}, "")
		case "text":
			args[i] = values(rows, a[i].Value, "")
		case "bigint":
			args[i] = values(rows, a[i].Value, int64(0))
		case "boolean":
			args[i] = values(rows, a[i].Value, false)
		case "bytea":
			args[i] = column(rows, func(row R) []byte {
				b, _ := a[i].Value(row).([]byte)
				return b
			})
		}
	}
	return args
}

// values returns the values of a column, as pointers if one of them is nil.
func values[R, V any](rows []R, value func(R) any, _ V) any {
	list, null := make([]V, len(rows)), false
	pointers := make([]*V, len(rows))
	for i, row := range rows {
		if v, ok := value(row).(V); ok {
			list[i], pointers[i] = v, &list[i]
		} else {
			null = true
		}
	}
	if null {
		return pointers
	}
	return list
}

// column returns an array with a value of each row.
func column[R, V any](rows []R, value func(R) V) []V {
	values := make([]V, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

// newStatements builds the statements. create writes a whole group in one statement, which is a transaction by
// itself: one round trip. It leaves out a response, with all that belongs to it, if its campaign has another version.
// It also leaves out one whose idempotent call has happened. The result has the identifiers of the responses written.
func newStatements() *statements {
	b := &statements{
		schema:    len(bunstore.Migrations(migrationFiles, false)),
		responses: bunstore.ResponseColumns(), events: bunstore.EventColumns(),
	}
	b.events = append(b.events, bunstore.Column[bunstore.EventRow]{
		Name: "listening", Type: "bigint", Value: func(e bunstore.EventRow) any { return bunstore.ListenBits(e.Event) },
	})
	b.responses = append(b.responses, bunstore.Column[*bunstore.Creation]{
		Name: "campaign_version", Type: "bigint", Value: func(n *bunstore.Creation) any { return n.CampaignVersion },
	})
	responses, events := bunstore.ResponseColumns(), bunstore.EventColumns()
	write := `
written AS (
  INSERT INTO formsvc_events (` + bunstore.Names(events, "") + `, xact)
  SELECT ` + bunstore.Names(events, "e.") + `, ` + position + ` FROM ev AS e
)` + listening
	b.insertEvents = `WITH ev AS (SELECT * FROM ` + b.events.from(1, "e") + `), ` + write + `
SELECT EXISTS (SELECT FROM queued)`
	n := 2 // after the shard
	input := `WITH raised AS (SELECT * FROM ` + b.events.from(n, "e") + `), input AS (SELECT * FROM `
	n += len(b.events)
	input += b.responses.from(n, "i") + `)`
	// Locked, so that a change of the campaign waits for its responses, which a new limit counts; after waiting for one, the version is looked at again.
	// A subquery for each row, which a join would not be: it would read the whole table.
	b.create = input + `, held AS MATERIALIZED (
  SELECT c.id, c.account_id, c.version FROM formsvc_campaigns AS c
  WHERE c.id IN (SELECT i.campaign_id FROM input AS i) ORDER BY c.id FOR KEY SHARE OF c
), inserted AS (
  INSERT INTO formsvc_responses (` + bunstore.Names(responses, "") + `)
  SELECT ` + bunstore.Names(responses, "i.") + `
  FROM input AS i JOIN held AS c
    ON c.id = i.campaign_id AND c.account_id = i.account_id AND c.version = i.campaign_version
  WHERE (SELECT k.id FROM formsvc_idempotency AS k WHERE k.id = i.call) IS NULL
  ON CONFLICT (call) WHERE call IS NOT NULL DO NOTHING
  RETURNING id, campaign_id
), counted AS (
  INSERT INTO formsvc_counters AS n (campaign_id, shard, responses)
  SELECT campaign_id, $1::integer, count(*) FROM inserted GROUP BY campaign_id ORDER BY campaign_id
  ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses
), ev AS (
  SELECT e.* FROM raised AS e WHERE e.response_id IN (SELECT id FROM inserted)
), ` + write + `
SELECT r.id, EXISTS (SELECT FROM queued) FROM inserted AS r`
	return b
}

// InsertEvents implements bunstore.Backend.
func (b *backend) InsertEvents(ctx context.Context, c bun.IConn, list []formsvc.Event) (wake bool, err error) {
	rows := make([]bunstore.EventRow, len(list))
	for i := range list {
		rows[i] = bunstore.EventRow{Event: &list[i], About: list[i].ResponseID}
	}
	return wake, c.QueryRowContext(ctx, b.insertEvents, b.events.args(rows)...).Scan(&wake)
}

// CreateResponses implements bunstore.Backend. It needs no transaction, because it is one
// statement.
func (b *backend) CreateResponses(
	ctx context.Context, c bun.IConn, list []*bunstore.Creation,
) (written []bool, wake bool, err error) {
	var events []bunstore.EventRow
	for _, n := range list {
		for i := range n.Change.Events {
			events = append(events, bunstore.EventRow{Event: &n.Change.Events[i]})
		}
	}
	inserted := make(map[formsvc.ID]bool, len(list))
	_, err = bunstore.List(ctx, c, func(rows *sql.Rows, id *string) error {
		err := rows.Scan(id, &wake)
		inserted[formsvc.ID(*id)] = true
		return err
	}, b.create, slices.Concat([]any{b.shard}, b.events.args(events), b.responses.args(list))...)
	written = make([]bool, len(list))
	for i, n := range list {
		written[i] = inserted[n.Response.ID]
	}
	return written, wake, err
}
