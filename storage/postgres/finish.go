package postgres

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
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

// Finish implements bunstore.Backend.
func (*backend) Finish(ctx context.Context, c bun.IConn, done []bunstore.Done) (accepted []bool, err error) {
	numbers, err := bunstore.List(ctx, c, func(rows *sql.Rows, n *int) error { return rows.Scan(n) }, finishDeliveries, doneArgs(done)...)
	accepted = make([]bool, len(done))
	for _, n := range numbers {
		accepted[n-1] = true
	}
	return accepted, err
}

// doneArgs returns the columns of outcomes.
func doneArgs(done []bunstore.Done) []any {
	return []any{
		column(done, func(d bunstore.Done) string { return d.Endpoint }),
		column(done, func(d bunstore.Done) string { return d.ID }),
		column(done, func(d bunstore.Done) int64 { return d.Lease }),
		column(done, func(d bunstore.Done) int { return d.State }),
		column(done, func(d bunstore.Done) int { return d.Counted }),
		column(done, func(d bunstore.Done) int64 { return d.DueAt }),
		column(done, func(d bunstore.Done) int64 { return d.EndedAt }),
		column(done, func(d bunstore.Done) int64 { return d.Attempt.StartedAt.UnixMicro() }),
		column(done, func(d bunstore.Done) int64 { return d.Attempt.Duration.Microseconds() }),
		column(done, func(d bunstore.Done) int { return d.Attempt.Status }),
		column(done, func(d bunstore.Done) string { return d.Error }),
		column(done, func(d bunstore.Done) []byte { return bunstore.NotNull(d.Attempt.Answer) }),
	}
}
