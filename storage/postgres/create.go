package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// backend is what is specific to Postgres: whole groups are sent as arrays, one statement
// each.
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
	writeEvents  = insertEvent + `, e.response_id` + fromEvents
	writeCreated = insertEvent + `, NULL::uuid` + fromEvents

	insertEvent = `
written AS (
  INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, xact, type, created_at, payload, traceparent, about)
  SELECT e.id, e.account_id, e.campaign_id, e.response_id, ` + position + `, e.type, e.created_at, e.payload,
    nullif(e.traceparent, '')`
	fromEvents = ` FROM ev AS e
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

// Identifiers are sent as text and cast to uuid by the server: the driver can't encode
// our type.
const eventColumns = `unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::uuid[], $4::text[]::uuid[],
    $5::bigint[], $6::bytea[], $7::bigint[], $8::text[])
    AS e(id, account_id, campaign_id, response_id, type, payload, created_at, traceparent)`

const insertEvents = `WITH ev AS (SELECT * FROM ` + eventColumns + `), ` + writeEvents + listening + `
SELECT EXISTS (SELECT FROM queued)`

// createResponses writes a whole group in one statement, which is a transaction by
// itself: one round trip. It leaves out a response, with its events, if its campaign has
// another version or its reference is taken. The result has the identifiers of those
// written.
const createResponses = `
WITH input AS (
  SELECT * FROM unnest($9::text[]::uuid[], $10::text[]::uuid[], $11::text[]::uuid[], $12::bigint[], $13::text[],
    $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[],
    $22::bigint[], $23::text[])
  AS i(id, account_id, campaign_id, campaign_version, reference, status, email, first_name, last_name,
    answers, version, created_at, updated_at, completed_at, events)
), ` + insertResponses + selectInserted

// createKeyedResponses is createResponses with idempotency records, NULL for responses
// without one. It also leaves out responses whose record exists. If another transaction
// commits such a record meanwhile, the statement fails.
const createKeyedResponses = `
WITH input AS (
  SELECT * FROM unnest($9::text[]::uuid[], $10::text[]::uuid[], $11::text[]::uuid[], $12::bigint[], $13::text[],
    $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[],
    $22::bigint[], $23::text[], $25::bytea[], $26::bytea[], $27::boolean[], $28::bytea[], $29::text[]::uuid[], $30::bigint[])
  AS i(id, account_id, campaign_id, campaign_version, reference, status, email, first_name, last_name,
    answers, version, created_at, updated_at, completed_at, events, record, request, refused, result, about, recorded_at)
  -- A subquery for each row, which NOT EXISTS would not be: it would read the whole table.
  WHERE (SELECT k.id FROM formsvc_idempotency AS k WHERE k.id = i.record) IS NULL
), ` + insertResponses + `, remembered AS (
  INSERT INTO formsvc_idempotency (id, account_id, request, refused, result, response_id, created_at)
  SELECT i.record, i.account_id, i.request, i.refused, i.result, i.about, i.recorded_at
  FROM input AS i JOIN inserted AS r ON r.id = i.id WHERE i.record IS NOT NULL
)` + selectInserted

// insertResponses is the part of both that writes the rows of the CTE input.
const insertResponses = `inserted AS (
  INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, first_name, last_name, answers,
    version, created_at, updated_at, completed_at, events)
  SELECT i.id, i.account_id, i.campaign_id, i.reference, i.status, i.email, i.first_name, i.last_name, i.answers,
    i.version, i.created_at, i.updated_at, i.completed_at, i.events
  FROM input AS i JOIN formsvc_campaigns AS c
    ON c.id = i.campaign_id AND c.account_id = i.account_id AND c.version = i.campaign_version
  ON CONFLICT DO NOTHING
  RETURNING id, campaign_id
), counted AS (
  INSERT INTO formsvc_counters AS n (campaign_id, shard, responses)
  SELECT campaign_id, $24::integer, count(*) FROM inserted GROUP BY campaign_id ORDER BY campaign_id
  ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses
), ev AS (
  SELECT e.* FROM ` + eventColumns + ` WHERE e.response_id IN (SELECT id FROM inserted)
), ` + writeCreated + listening

const selectInserted = ` SELECT r.id, EXISTS (SELECT FROM queued) FROM inserted AS r`

const selectRecord = "SELECT EXISTS (SELECT FROM formsvc_idempotency WHERE id = $1)"

// selectVersion tells why a response was left out: it returns its campaign's version, if
// the campaign exists.
const selectVersion = "SELECT version FROM formsvc_campaigns WHERE id = $1 AND account_id = $2"

// eventArgs returns the columns of events, in the order of eventColumns.
func eventArgs(events []*formsvc.Event) []any {
	var (
		ids, accounts, campaigns, responses = texts(len(events)), texts(len(events)), texts(len(events)), texts(len(events))
		types, created                      = make([]int64, len(events)), make([]int64, len(events))
		payloads                            = make([][]byte, len(events))
		traces                              []string // the server takes missing elements for NULL
	)
	for i, e := range events {
		ids[i], accounts[i], campaigns[i] = string(e.ID), string(e.AccountID), string(e.CampaignID)
		responses[i], types[i] = string(e.ResponseID), bunstore.TypeOf(e)
		payloads[i], created[i] = append([]byte{}, e.Payload...), e.CreatedAt.UnixMicro()
		if e.TraceParent != "" {
			if traces == nil {
				traces = texts(len(events))
			}
			traces[i] = e.TraceParent
		}
	}
	return []any{ids, accounts, campaigns, responses, types, payloads, created, traces}
}

func texts(n int) []string { return make([]string, n) }

// InsertEvents implements bunstore.Backend.
func (*backend) InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error) {
	if len(events) == 0 {
		return false, nil
	}
	list := make([]*formsvc.Event, len(events))
	for i := range events {
		list[i] = &events[i]
	}
	return wake, c.QueryRowContext(ctx, insertEvents, eventArgs(list)...).Scan(&wake)
}

// CreateResponses implements bunstore.Backend. It needs no transaction, because it is one
// statement.
func (b *backend) CreateResponses(ctx context.Context, c bun.IConn, group []*bunstore.Unit) error {
	inserted, err := b.insertResponses(ctx, c, group)
	if err != nil || len(inserted) == len(group) {
		return err
	}
	for _, u := range group {
		if !inserted[string(u.Creation.Response.ID)] {
			u.Wake = false
			if u.Err, err = refusal(ctx, c, u.Creation); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertResponses writes the group and returns the identifiers of the responses written.
func (b *backend) insertResponses(
	ctx context.Context, c bun.IConn, group []*bunstore.Unit,
) (inserted map[string]bool, err error) {
	statement, args := createResponses, b.creationArgs(group)
	if bunstore.Keyed(group) {
		statement, args = createKeyedResponses, append(args, recordArgs(group)...)
	}
	rows, err := c.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	inserted = make(map[string]bool, len(group))
	wake := false
	for rows.Next() {
		var id string
		if err := rows.Scan(&id, &wake); err != nil {
			return nil, err
		}
		inserted[id] = true
	}
	for _, u := range group {
		u.Wake = wake
	}
	return inserted, rows.Err()
}

// refusal returns why a response was left out.
func refusal(ctx context.Context, c bun.IConn, n *bunstore.Creation) (reason, err error) {
	if r := n.Change.Idempotency; r != nil {
		var taken bool
		if err := c.QueryRowContext(ctx, selectRecord, bunstore.RecordHash(r.AccountID, r.Key)).Scan(&taken); err != nil {
			return nil, err
		}
		if taken {
			return formsvc.ErrRepeated, nil
		}
	}
	var version int64
	err = c.QueryRowContext(ctx, selectVersion, string(n.Response.CampaignID), string(n.Response.AccountID)).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return formsvc.ErrNotFound, nil
	case err != nil:
		return nil, err
	case version != n.CampaignVersion:
		return formsvc.ErrStale, nil
	}
	return formsvc.ErrConflict, nil
}

func (b *backend) creationArgs(group []*bunstore.Unit) []any {
	n := len(group)
	var (
		events                         = make([]*formsvc.Event, 0, n)
		ids, accounts, campaigns, refs = texts(n), texts(n), texts(n), texts(n)
		statuses, emails, firsts       = texts(n), texts(n), texts(n)
		lasts, answers, with           = texts(n), texts(n), texts(n)
		seen, versions                 = make([]int64, n), make([]int64, n)
		created, updated, completed    = make([]int64, n), make([]int64, n), make([]int64, n)
	)
	for i, u := range group {
		r := &u.Creation.Response
		ids[i], accounts[i], campaigns[i] = string(r.ID), string(r.AccountID), string(r.CampaignID)
		seen[i], refs[i], statuses[i] = u.Creation.CampaignVersion, r.Reference, r.Status
		emails[i], firsts[i], lasts[i] = r.User.Email, r.User.FirstName, r.User.LastName
		answers[i], versions[i], with[i] = r.Answers.JSON(), r.Version, bunstore.EventIDs(&u.Creation.Change)
		created[i], updated[i], completed[i] = r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), r.CompletedAt.UnixMicro()
		for j := range u.Creation.Change.Events {
			events = append(events, &u.Creation.Change.Events[j])
		}
	}
	return append(eventArgs(events), ids, accounts, campaigns, seen, refs, statuses, emails, firsts, lasts, answers,
		versions, created, updated, completed, with, b.shard)
}

// recordArgs returns the columns of the idempotency records of a group, NULL where there
// is none.
func recordArgs(group []*bunstore.Unit) []any {
	n := len(group)
	var (
		ids, requests, results = make([][]byte, n), make([][]byte, n), make([][]byte, n)
		refused, created       = make([]bool, n), make([]int64, n)
		about                  = make([]*string, n)
	)
	for i, u := range group {
		r := u.Creation.Change.Idempotency
		if r == nil {
			continue
		}
		ids[i], requests[i], results[i] = bunstore.RecordHash(r.AccountID, r.Key), r.Request[:], append([]byte{}, r.Result...)
		refused[i], created[i] = r.Refused, r.CreatedAt.UnixMicro()
		if r.ResponseID != "" {
			about[i] = (*string)(&r.ResponseID)
		}
	}
	return []any{ids, requests, refused, results, about, created}
}
