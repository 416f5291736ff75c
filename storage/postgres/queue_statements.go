package postgres

import "github.com/formsvc/toolkit/storage/internal/bunstore"

// The statements of the queue allow only one plan, a good one, because the server may
// have no statistics, or those of empty tables. LIMIT in LATERAL makes a join a look-up
// for each row; ARRAY makes a list of rows that are read one by one.

// ready finds the endpoints with due deliveries by jumping from one endpoint to the next
// in the index of pending deliveries. Its cost is the number of endpoints with work,
// whatever their backlogs.
const ready = `
WITH RECURSIVE pending(webhook_id) AS (
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d WHERE d.state = 0 ` + indexOrder + `)
  UNION ALL
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d WHERE d.state = 0 AND d.webhook_id > p.webhook_id ` + indexOrder + `)
  FROM pending AS p WHERE p.webhook_id IS NOT NULL
)
SELECT w.id, w.account_id, w.url, w.secret, w.previous_secret, w.previous_until, w.headers
FROM pending AS p CROSS JOIN LATERAL (
  SELECT * FROM formsvc_webhooks AS w WHERE w.id = p.webhook_id LIMIT 1
) AS w
WHERE NOT w.disabled AND ($1 >= ` + firstDue + `0` + endDue + ` OR $1 >= ` + firstDue + `1` + endDue + `)
   OR $1 >= ` + firstDue + `2` + endDue + `
ORDER BY w.id`

const (
	// indexOrder is an order that only the index of pending deliveries provides without
	// sorting.
	indexOrder = `ORDER BY d.webhook_id, d.kind, d.due_at LIMIT 1`

	firstDue = `(SELECT d.due_at FROM formsvc_deliveries AS d
    WHERE d.state = 0 AND d.webhook_id = p.webhook_id AND d.kind = `
	endDue = ` ORDER BY d.due_at LIMIT 1)`
)

// claimDue picks each share in the index of due deliveries, kind by kind until there are
// enough, and skips rows that another node is claiming. It addresses the rows by ctid:
// they are locked, so they don't move. The token contains the time, see
// bunstore.claimedAt.
const claimDue = `
UPDATE formsvc_deliveries AS d SET lease = greatest((d.lease + 1) | 1, $4::bigint * 16 + 1), due_at = $5
WHERE d.ctid = ANY (ARRAY (
  SELECT p.ctid FROM unnest($1::text[]::uuid[], $2::integer[], $3::boolean[]) AS s(webhook_id, n, late)
  CROSS JOIN LATERAL (SELECT w.disabled FROM formsvc_webhooks AS w WHERE w.id = s.webhook_id LIMIT 1) AS w
  CROSS JOIN LATERAL (
    SELECT f.ctid FROM ` + dueOf + `0 AND NOT s.late AND NOT w.disabled` + oldest + `
    UNION ALL SELECT f.ctid FROM ` + dueOf + `1 AND NOT w.disabled` + oldest + `
    UNION ALL SELECT f.ctid FROM ` + dueOf + `2` + oldest + `
    UNION ALL SELECT f.ctid FROM ` + dueOf + `0 AND s.late AND NOT w.disabled` + oldest + `
    LIMIT s.n
  ) AS p))
RETURNING d.id, d.event_id, d.webhook_id, d.event_type, d.kind, d.attempts, d.size, d.lease`

const (
	dueOf = `(SELECT q.ctid FROM formsvc_deliveries AS q
      WHERE q.webhook_id = s.webhook_id AND q.state = 0 AND q.due_at <= $4 AND q.kind = `
	oldest = `
      ORDER BY q.due_at LIMIT s.n FOR UPDATE SKIP LOCKED) AS f`
)

// finishDeliveries finds the rows of the outcomes by their key. It doesn't compare the
// state, since only a pending row has an odd lease; so no index but that of the key can
// be used.
const finishDeliveries = `
WITH outcome AS MATERIALIZED (
  SELECT * FROM unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::bigint[], $4::integer[], $5::integer[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::integer[], $11::text[], $12::bytea[])
  WITH ORDINALITY AS o(webhook_id, id, lease, state, counted, due_at, ended_at, started_at, duration, status, error, answer, n)
), found AS MATERIALIZED (
  SELECT o.*, f.ctid AS place FROM outcome AS o CROSS JOIN LATERAL (
    SELECT f.ctid FROM formsvc_deliveries AS f
    WHERE f.webhook_id = o.webhook_id AND f.id = o.id AND f.lease = o.lease LIMIT 1
  ) AS f
), done AS (
  UPDATE formsvc_deliveries AS d
  SET state = o.state, kind = CASE WHEN o.state = 0 AND o.counted > 0 THEN 1 ELSE d.kind END,
    attempts = d.attempts + o.counted, due_at = o.due_at, lease = d.lease + 1,
    updated_at = CASE WHEN o.counted > 0 THEN o.ended_at ELSE d.updated_at END
  FROM found AS o WHERE d.ctid = o.place AND d.lease = o.lease
  RETURNING o.n, d.webhook_id, d.id, d.event_id, d.event_type, d.kind, d.state, d.attempts, o.counted, o.ended_at,
    o.started_at, o.duration, o.status, o.error, o.answer
), logged AS (
  INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer)
  SELECT d.id, d.attempts, d.started_at, d.duration, d.status, d.error, d.answer FROM done AS d WHERE d.counted > 0
), failed AS MATERIALIZED (
  SELECT d.*, e.account_id, w.id AS listener FROM done AS d
  CROSS JOIN LATERAL (SELECT e.account_id FROM formsvc_events AS e WHERE e.id = d.event_id LIMIT 1) AS e
  LEFT JOIN LATERAL (SELECT w.id FROM formsvc_webhooks AS w WHERE w.id = d.webhook_id LIMIT 1) AS w ON true
  WHERE d.state = 2 AND d.kind <> 2
), noticed AS (
  INSERT INTO formsvc_notices (delivery_id, account_id, webhook_id, event_id, event_type, attempts, status, error, at,
    due_at, noted)
  SELECT f.id, f.account_id, f.webhook_id, f.event_id, f.event_type, f.attempts, f.status, f.error, f.ended_at,
    f.ended_at, false FROM failed AS f
  ON CONFLICT DO NOTHING
), failing AS (
  INSERT INTO formsvc_failing AS f (webhook_id, account_id, failures, first_at, since, last_at, status, error, told_at,
    until, lease)
  SELECT x.listener, x.account_id, count(*), min(x.ended_at), min(x.ended_at), max(x.ended_at),
    (array_agg(x.status ORDER BY x.ended_at DESC))[1], (array_agg(x.error ORDER BY x.ended_at DESC))[1],
    -62135596800000000, -62135596800000000, 0
  FROM failed AS x WHERE x.listener IS NOT NULL GROUP BY x.listener, x.account_id ORDER BY x.listener
  ` + bunstore.AddFailures + `
)
SELECT n FROM done`

const (
	noteNotices    = "UPDATE formsvc_notices SET noted = true WHERE delivery_id = ANY ($1::text[]::uuid[])"
	selectPayloads = "SELECT id, payload, coalesce(traceparent, '') FROM formsvc_events WHERE id = ANY ($1::text[]::uuid[])"
)

// lookAtEventsAbout finds events by the two indexed columns, and applies the other
// conditions to the result. OFFSET keeps the planner from merging the two.
const lookAtEventsAbout = `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM (
  SELECT m.* FROM unnest(string_to_array($4::text, ',')::uuid[]) AS made(id)
  CROSS JOIN LATERAL (SELECT * FROM formsvc_events AS m WHERE m.id = made.id LIMIT 1) AS m
  UNION ALL
  SELECT a.* FROM (SELECT * FROM formsvc_events AS a WHERE a.about = $3::text::uuid OFFSET 0) AS a
) AS e
WHERE e.account_id = $1::text::uuid AND e.campaign_id = $2::text::uuid AND e.response_id = $3::text::uuid
  AND e.type & 65536 = 0 ORDER BY e.xact, e.seq LIMIT $5`

// settled is the oldest running transaction. No event can still appear before it in the
// feed.
const settled = `(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + f."offset" FROM formsvc_feed AS f WHERE f.id = 1)`

// lookAtAllEvents and inOrder find the next events of each account by the only index of
// the feed, and keep the first of them all. An index over all accounts would add cost to
// every new response.
const (
	lookAtAllEvents = `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM (
  SELECT n.* FROM formsvc_accounts AS a CROSS JOIN LATERAL (
    SELECT i.account_id, i.xact, i.seq FROM formsvc_events AS i
    WHERE i.account_id = a.id AND (i.xact, i.seq) > ($2::bigint, $3::bigint)`
	inOrder = `
    ORDER BY i.xact, i.seq LIMIT $4
  ) AS n WHERE $1::text IS NOT NULL ORDER BY n.xact, n.seq LIMIT $4
) AS n CROSS JOIN LATERAL (
  SELECT * FROM formsvc_events AS m WHERE m.account_id = n.account_id AND m.xact = n.xact AND m.seq = n.seq LIMIT 1
) AS e ORDER BY e.xact, e.seq`
)

// Statements implements bunstore.Backend.
func (*backend) Statements() *bunstore.Statements {
	return &bunstore.Statements{
		Ready: ready,
		LeaseNotices: `
UPDATE formsvc_notices AS n SET due_at = $1 WHERE n.delivery_id = ANY (ARRAY (
  SELECT f.delivery_id FROM formsvc_notices AS f WHERE NOT f.noted AND f.due_at <= $2
  ORDER BY f.at, f.delivery_id LIMIT $3 FOR UPDATE SKIP LOCKED))
RETURNING n.delivery_id, n.account_id, n.webhook_id, n.event_id, n.event_type, n.attempts, n.status, n.error, n.at,
  coalesce((SELECT w.url FROM formsvc_webhooks AS w WHERE w.id = n.webhook_id), '')`,
		LookAtEvents: `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM formsvc_events AS e
WHERE e.account_id = $1::text::uuid AND (e.xact, e.seq) > ($2::bigint, $3::bigint)
  AND e.xact < ` + settled + ` ORDER BY e.xact, e.seq LIMIT $4`,
		LookAtEarlyEvents: `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM formsvc_events AS e
WHERE e.account_id = $1::text::uuid AND (e.xact, e.seq) > ($2::bigint, $3::bigint) ORDER BY e.xact, e.seq LIMIT $4`,
		LookAtAllEvents:      lookAtAllEvents + ` AND i.xact < ` + settled + inOrder,
		LookAtAllEarlyEvents: lookAtAllEvents + inOrder,
		LookBackAtEvents: `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM formsvc_events AS e
WHERE e.account_id = $1::text::uuid AND (e.xact, e.seq) < ($2::bigint, $3::bigint) ORDER BY e.xact DESC, e.seq DESC LIMIT $4`,
		LookAtEventsAbout: lookAtEventsAbout,
		TouchResponse:     touchResponse,
		UseKeys:           useKeys,
		FoldedEmail:       `lower(r.email COLLATE "C")`,
		FoldedIndex:       true,
	}
}
