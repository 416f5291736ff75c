package postgres

import "github.com/formsvc/toolkit/storage/internal/bunstore"

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
    AND w.events & e.type <> 0 AND (w.campaign_id IS NULL OR w.campaign_id = e.campaign_id)
  RETURNING event_id
)`

// Identifiers are sent as text and cast to uuid by the server: the driver can't encode
// our type.
const eventColumns = `unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::uuid[], $4::text[]::uuid[],
    $5::bigint[], $6::bytea[], $7::bigint[], $8::text[])
    AS e(id, account_id, campaign_id, response_id, type, payload, created_at, traceparent)`

const insertEvents = `WITH ev AS (SELECT * FROM ` + eventColumns + `), ` + writeEvents + listening + `
SELECT EXISTS (SELECT FROM queued)`

const insertOnlyEvents = `WITH ev AS (SELECT * FROM ` + eventColumns + `), ` + writeCreated + ` SELECT`

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

// touchResponse locks a response by writing it. A transaction with an older snapshot
// (REPEATABLE READ) can then no longer change the response: its events would come before
// those of the transaction that ran this.
const touchResponse = `UPDATE formsvc_responses AS r SET version = r.version
WHERE r.campaign_id = ? AND r.id = ? AND r.account_id = ? RETURNING ` + bunstore.ResponseColumns

const addCount = `
INSERT INTO formsvc_counters AS n (campaign_id, shard, responses) VALUES ($1::text::uuid, $2, $3)
ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses`

const selectRecord = "SELECT EXISTS (SELECT FROM formsvc_idempotency WHERE id = $1)"

// selectVersion tells why a response was left out: it returns its campaign's version, if
// the campaign exists.
const selectVersion = "SELECT version FROM formsvc_campaigns WHERE id = $1 AND account_id = $2"

// useKeys locks the keys in the order of their identifiers, so that nodes that write at
// the same time don't deadlock.
const useKeys = `
WITH u AS MATERIALIZED (
  SELECT (j.use ->> 0)::uuid AS account_id, (j.use ->> 1)::uuid AS id, (j.use ->> 2)::bigint AS used_at
  FROM json_array_elements($1::text::json) AS j(use)
), held AS MATERIALIZED (
  SELECT k.id, u.used_at FROM u JOIN formsvc_keys AS k ON k.id = u.id AND k.account_id = u.account_id
  WHERE k.used_at < u.used_at ORDER BY k.id FOR NO KEY UPDATE OF k
)
UPDATE formsvc_keys AS k SET used_at = held.used_at FROM held WHERE k.id = held.id AND k.used_at < held.used_at`
