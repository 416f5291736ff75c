package postgres

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
)

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

// Ready implements bunstore.Backend.
func (*backend) Ready(ctx context.Context, c bun.IConn, now int64) ([]bunstore.Due, error) {
	return bunstore.List(ctx, c, bunstore.ScanDue, ready, now)
}

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

// Claim implements bunstore.Backend.
func (*backend) Claim(
	ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64,
) ([]delivery.Claim, error) {
	return bunstore.List(ctx, c, bunstore.ScanClaim, claimDue,
		column(shares, func(s delivery.Share) string { return s.Endpoint }),
		column(shares, func(s delivery.Share) int { return min(s.N, 1<<20) }),
		column(shares, func(s delivery.Share) bool { return s.LateFirst }), now, until)
}
