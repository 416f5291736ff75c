package postgres

// listening is the part of a statement that writes the events of the CTE ev
// and a delivery of each for every webhook that listens.
const listening = `
written AS (
  INSERT INTO formsvc_events (id, account_id, campaign_id, response_id, type, payload, created_at)
  SELECT e.id, e.account_id, e.campaign_id, e.response_id, e.type, e.payload, e.created_at FROM ev AS e
), queued AS (
  INSERT INTO formsvc_deliveries (id, account_id, webhook_id, event_id, event_type, state, attempts, lease,
    due_at, created_at, updated_at)
  SELECT formsvc_delivery_id(e.id, w.id), e.account_id, w.id, e.id, e.type, 0, 0, 0,
    e.created_at, e.created_at, -62135596800000000 -- the zero time: no attempt has ended
  FROM ev AS e JOIN formsvc_webhooks AS w ON w.account_id = e.account_id AND NOT w.disabled
    AND w.events & e.type <> 0 AND (w.campaign_id IS NULL OR w.campaign_id = e.campaign_id)
  RETURNING event_id
)`

// Identifiers travel as text and become uuid in the server: the driver has no
// type of ours to encode.
const eventColumns = `unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::uuid[], $4::text[]::uuid[],
    $5::bigint[], $6::bytea[], $7::bigint[]) AS e(id, account_id, campaign_id, response_id, type, payload, created_at)`

const insertEvents = `WITH ev AS (SELECT * FROM ` + eventColumns + `), ` + listening + `
SELECT EXISTS (SELECT FROM queued)`

// createResponses writes a whole group in one statement, which is a
// transaction by itself: one round trip. A response whose campaign has another
// version, or whose reference is taken, is left out with its events; the result
// names those that are in.
const createResponses = `
WITH input AS (
  SELECT * FROM unnest($8::text[]::uuid[], $9::text[]::uuid[], $10::text[]::uuid[], $11::bigint[], $12::text[],
    $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[], $19::bigint[], $20::bigint[],
    $21::bigint[])
  AS i(id, account_id, campaign_id, campaign_version, reference, status, email, first_name, last_name,
    answers, version, created_at, updated_at, completed_at)
), inserted AS (
  INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email, first_name, last_name, answers,
    version, created_at, updated_at, completed_at)
  SELECT i.id, i.account_id, i.campaign_id, i.reference, i.status, i.email, i.first_name, i.last_name, i.answers,
    i.version, i.created_at, i.updated_at, i.completed_at
  FROM input AS i JOIN formsvc_campaigns AS c
    ON c.id = i.campaign_id AND c.account_id = i.account_id AND c.version = i.campaign_version
  ON CONFLICT DO NOTHING
  RETURNING id, campaign_id
), counted AS (
  INSERT INTO formsvc_counters AS n (campaign_id, shard, responses)
  SELECT campaign_id, $22::integer, count(*) FROM inserted GROUP BY campaign_id ORDER BY campaign_id
  ON CONFLICT (campaign_id, shard) DO UPDATE SET responses = n.responses + excluded.responses
), ev AS (
  SELECT e.* FROM ` + eventColumns + ` WHERE e.response_id IN (SELECT id FROM inserted)
), ` + listening + `
SELECT r.id, EXISTS (SELECT FROM queued) FROM inserted AS r`

// selectVersion says why a response was left out: its campaign's version, if
// there is such a campaign.
const selectVersion = "SELECT version FROM formsvc_campaigns WHERE id = $1 AND account_id = $2"

// claimDue picks each endpoint's share in the index of what is due and skips
// what another node is claiming. The array in between keeps the planner on the
// indexes: as a join it read the whole table when statistics were old.
const claimDue = `
UPDATE formsvc_deliveries AS d SET lease = d.lease + 1, due_at = $4
WHERE d.id = ANY (ARRAY (
  SELECT p.id FROM unnest($1::text[]::uuid[], $2::integer[]) AS s(webhook_id, n)
  CROSS JOIN LATERAL (
    SELECT f.id FROM formsvc_deliveries AS f
    WHERE f.webhook_id = s.webhook_id AND f.state = 0 AND f.due_at <= $3
    ORDER BY f.due_at LIMIT s.n FOR UPDATE SKIP LOCKED
  ) AS p))
RETURNING d.id, d.event_id, d.webhook_id, d.event_type, d.attempts, d.lease`

const finishDeliveries = `
WITH outcome AS (
  SELECT * FROM unnest($1::text[]::uuid[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::integer[], $10::text[], $11::bytea[])
  AS o(id, lease, state, counted, due_at, ended_at, started_at, duration, status, error, answer)
), done AS (
  UPDATE formsvc_deliveries AS d
  SET state = o.state, attempts = d.attempts + o.counted, due_at = o.due_at, lease = d.lease + 1,
    updated_at = CASE WHEN o.counted > 0 THEN o.ended_at ELSE d.updated_at END
  FROM outcome AS o
  WHERE d.id = ANY ($1::text[]::uuid[]) AND d.id = o.id AND d.lease = o.lease AND d.state = 0
  RETURNING d.id, d.attempts
), logged AS (
  INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer)
  SELECT d.id, d.attempts, o.started_at, o.duration, o.status, o.error, o.answer
  FROM done AS d JOIN outcome AS o ON o.id = d.id WHERE o.counted > 0
)
SELECT id FROM done`

const selectPayloads = "SELECT id, payload FROM formsvc_events WHERE id = ANY ($1::text[]::uuid[])"
