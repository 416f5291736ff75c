package sqlite

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// With INDEXED BY a statement fails rather than scans: SQLite's statistics may be old.

// ready finds the endpoints with due deliveries by jumping from one endpoint to the next
// in the index of pending deliveries. Its cost is the number of endpoints with work,
// whatever their backlogs.
const ready = `
WITH RECURSIVE pending(webhook_id) AS (
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d INDEXED BY formsvc_deliveries_due
          WHERE d.state = 0 ORDER BY d.webhook_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d INDEXED BY formsvc_deliveries_due
          WHERE d.state = 0 AND d.webhook_id > p.webhook_id ORDER BY d.webhook_id LIMIT 1)
  FROM pending AS p WHERE p.webhook_id IS NOT NULL
)
SELECT w.id, w.account_id, w.url, w.secret, w.previous_secret, w.previous_until, w.headers
FROM pending AS p CROSS JOIN formsvc_webhooks AS w ON w.id = p.webhook_id
WHERE (NOT w.disabled AND (` + due0 + ` OR ` + due1 + `)) OR ` + due2 + `
ORDER BY w.id`

// Ready implements bunstore.Backend.
func (*backend) Ready(ctx context.Context, c bun.IConn, now int64) ([]bunstore.Due, error) {
	return bunstore.List(ctx, c, bunstore.ScanDue, ready, now)
}

const (
	due = `EXISTS (SELECT 1 FROM formsvc_deliveries AS d INDEXED BY formsvc_deliveries_due
  WHERE d.state = 0 AND d.webhook_id = w.id AND d.due_at <= ?1 AND d.kind = `
	due0 = due + `0)`
	due1 = due + `1)`
	due2 = due + `2)`
)

// The parts of a claim: ?1 is the webhook, ?2 the current time, ?3 the number, ?4 the end
// of the lease. They run in the order in which they are concatenated, until there are
// enough deliveries. The token contains the time, see bunstore.claimedAt.
const (
	claimStart = `
UPDATE formsvc_deliveries SET lease = max((lease + 1) | 1, ?2 * 16 + 1), due_at = ?4
WHERE webhook_id = ?1 AND id IN (SELECT id FROM (`
	claimEnd = `) LIMIT CAST(?3 AS BIGINT))
RETURNING id, event_id, webhook_id, event_type, kind, attempts, size, lease`

	enabled = `EXISTS (SELECT 1 FROM formsvc_webhooks AS w WHERE w.id = ?1 AND NOT w.disabled)`
	exists  = `EXISTS (SELECT 1 FROM formsvc_webhooks AS w WHERE w.id = ?1)`

	claimKind = `SELECT id FROM (SELECT d.id FROM formsvc_deliveries AS d INDEXED BY formsvc_deliveries_due
  WHERE d.state = 0 AND d.webhook_id = ?1 AND d.due_at <= ?2 AND d.kind = `
	claimMost   = ` ORDER BY d.due_at LIMIT CAST(?3 AS BIGINT))`
	claimFirst  = claimKind + `0 AND ` + enabled + claimMost
	claimRetry  = claimKind + `1 AND ` + enabled + claimMost
	claimReplay = claimKind + `2 AND ` + exists + claimMost
	all         = ` UNION ALL `

	claimDue     = claimStart + claimFirst + all + claimRetry + all + claimReplay + claimEnd
	claimLateDue = claimStart + claimRetry + all + claimReplay + all + claimFirst + claimEnd
)

// Claim implements bunstore.Backend.
func (*backend) Claim(
	ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64,
) (claims []delivery.Claim, err error) {
	for _, share := range shares {
		statement := claimDue
		if share.LateFirst {
			statement = claimLateDue
		}
		list, err := bunstore.List(ctx, c, bunstore.ScanClaim, statement, raw(formsvc.ID(share.Endpoint)), now, share.N, until)
		if err != nil {
			return nil, err
		}
		claims = append(claims, list...)
	}
	return claims, nil
}
