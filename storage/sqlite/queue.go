package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/uptrace/bun"

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

// ClaimDue implements bunstore.Backend.
func (*backend) ClaimDue(
	ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64,
) (leased []bunstore.Leased, err error) {
	for _, share := range shares {
		statement := claimDue
		if share.LateFirst {
			statement = claimLateDue
		}
		rows, err := c.QueryContext(ctx, statement, share.Endpoint, now, share.N, until) //nolint:rowserrcheck // ScanLeased does
		if err != nil {
			return nil, err
		}
		if leased, err = bunstore.ScanLeased(leased, rows); err != nil {
			return nil, err
		}
	}
	return leased, nil
}

const (
	// One statement of fixed shape records many outcomes, because a call costs more than
	// recording an outcome.
	finishStart = `
WITH o(webhook_id, id, lease, state, counted, due_at, ended_at) AS (VALUES `
	finishRow = `(?, ?, ?, ?, ?, ?, ?)`
	finishEnd = `)
UPDATE formsvc_deliveries AS d SET state = o.state, kind = CASE WHEN o.state = 0 AND o.counted > 0 THEN 1 ELSE d.kind END,
  attempts = d.attempts + o.counted, due_at = o.due_at, lease = d.lease + 1,
  updated_at = CASE WHEN o.counted > 0 THEN o.ended_at ELSE d.updated_at END
FROM o WHERE d.webhook_id = o.webhook_id AND d.id = o.id AND d.lease = o.lease RETURNING webhook_id, id, lease - 1, attempts, kind`

	// A notice has the event's account, because the webhook may be deleted by now.
	insertNotice = `
INSERT INTO formsvc_notices (delivery_id, account_id, webhook_id, event_id, event_type, attempts, status, error, at,
  due_at, noted)
SELECT d.id, e.account_id, d.webhook_id, d.event_id, d.event_type, d.attempts, ?3, ?4, ?5, ?5, 0
FROM formsvc_deliveries AS d CROSS JOIN formsvc_events AS e ON e.id = d.event_id
WHERE d.webhook_id = ?1 AND d.id = ?2 ON CONFLICT DO NOTHING`

	addFailing = `
INSERT INTO formsvc_failing AS f (webhook_id, account_id, failures, first_at, since, last_at, status, error, told_at,
  until, lease)
SELECT w.id, w.account_id, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?7, 0 FROM formsvc_webhooks AS w WHERE w.id = ?1
` + bunstore.AddFailures
)

// A claimKey names one claim of a delivery.
type claimKey struct {
	endpoint, id string
	lease        int64
}

// finishRows is the number of outcomes per statement. A shorter list is padded with
// outcomes that match no delivery.
const finishRows = 32

// finishColumns is the number of arguments per outcome.
const finishColumns = 7

// newFinish returns the statement that records outcomes.
func newFinish() string {
	return finishStart + strings.Repeat(finishRow+", ", finishRows-1) + finishRow + finishEnd
}

// FinishDeliveries implements bunstore.Backend.
func (b *backend) FinishDeliveries(ctx context.Context, c bun.IConn, done []bunstore.Done) ([]bool, error) {
	index := make(map[claimKey]int, len(done))
	args := make([]any, 0, (len(done)+finishRows)*finishColumns)
	for i := range done {
		d := &done[i]
		index[claimKey{d.Endpoint, d.ID, d.Lease}] = i
		args = append(args, d.Endpoint, d.ID, d.Lease, d.State, d.Counted, d.DueAt, d.EndedAt)
	}
	for len(args)%(finishRows*finishColumns) != 0 {
		args = append(args, "", "", 0, 0, 0, 0, 0)
	}
	f := finishing{statement: b.finish, done: done, index: index, accepted: make([]bool, len(done)), attempts: b.attempts.rows(len(done))}
	for some := range slices.Chunk(args, finishRows*finishColumns) {
		if err := f.finish(ctx, c, some); err != nil {
			return nil, err
		}
	}
	if _, err := b.attempts.insert(ctx, c, f.attempts); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.failed, func(x, y *bunstore.Done) int { return cmp.Compare(x.Endpoint, y.Endpoint) })
	return f.accepted, notice(ctx, c, f.failed)
}

// A finishing collects the consequences of outcomes.
type finishing struct {
	statement string
	done      []bunstore.Done
	index     map[claimKey]int
	accepted  []bool
	attempts  []any
	failed    []*bunstore.Done
}

func (f *finishing) finish(ctx context.Context, c bun.IConn, args []any) (err error) {
	rows, err := c.QueryContext(ctx, f.statement, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var (
			k            claimKey
			number, kind int
		)
		if err := rows.Scan(&k.endpoint, &k.id, &k.lease, &number, &kind); err != nil {
			return err
		}
		i := f.index[k]
		d := &f.done[i]
		f.accepted[i] = true
		if d.Logged() {
			a := &d.Attempt
			f.attempts = append(f.attempts, d.ID, number, a.StartedAt.UnixMicro(), a.Duration.Microseconds(), a.Status, d.Error,
				notNull(a.Answer))
		}
		if d.Result == delivery.Failed && delivery.Kind(kind) != delivery.Replay {
			f.failed = append(f.failed, d)
		}
	}
	return rows.Err()
}

// notice writes the notices of permanent failures, which are sorted by endpoint.
func notice(ctx context.Context, c bun.IConn, failed []*bunstore.Done) error {
	for _, d := range failed {
		if _, err := c.ExecContext(ctx, insertNotice, d.Endpoint, d.ID, d.Attempt.Status, d.Error, d.EndedAt); err != nil {
			return err
		}
	}
	byEnd := func(a, b *bunstore.Done) int { return cmp.Compare(a.EndedAt, b.EndedAt) }
	for len(failed) > 0 {
		n := slices.IndexFunc(failed, func(d *bunstore.Done) bool { return d.Endpoint != failed[0].Endpoint })
		if n < 0 {
			n = len(failed)
		}
		first, last := slices.MinFunc(failed[:n], byEnd), slices.MaxFunc(failed[:n], byEnd)
		if _, err := c.ExecContext(ctx, addFailing, first.Endpoint, n, first.EndedAt, last.EndedAt, last.Attempt.Status,
			last.Error, bunstore.Never); err != nil {
			return err
		}
		failed = failed[n:]
	}
	return nil
}

const noteNotice = "UPDATE formsvc_notices SET noted = 1 WHERE delivery_id = ?"

// NoteNotices implements bunstore.Backend.
func (*backend) NoteNotices(ctx context.Context, c bun.IConn, ids []string) error {
	for _, id := range ids {
		if _, err := c.ExecContext(ctx, noteNotice, id); err != nil {
			return err
		}
	}
	return nil
}

const selectPayloads = "SELECT e.id, e.payload, coalesce(e.traceparent, '') " +
	"FROM json_each(?1) AS j CROSS JOIN formsvc_events AS e ON e.id = j.value"

// Payloads implements bunstore.Backend.
func (*backend) Payloads(ctx context.Context, c bun.IConn, ids []string) (map[string]delivery.Payload, error) {
	rows, err := c.QueryContext(ctx, selectPayloads, `["`+strings.Join(ids, `","`)+`"]`) //nolint:rowserrcheck // ScanPayloads does
	if err != nil {
		return nil, err
	}
	return bunstore.ScanPayloads(rows, len(ids))
}

// Statements implements bunstore.Backend.
func (*backend) Statements() *bunstore.Statements {
	const lookAtEvents = `
SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload) FROM formsvc_events AS e INDEXED BY formsvc_events_account
WHERE e.account_id = ?1 AND e.seq > ?2 AND ?3 IS NOT NULL ORDER BY e.seq LIMIT CAST(?4 AS BIGINT)`
	const lookAtAllEvents = `
SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload) FROM formsvc_events AS e
WHERE e.seq > ?2 AND ?1 IS NOT NULL AND ?3 IS NOT NULL ORDER BY e.seq LIMIT CAST(?4 AS BIGINT)`
	return &bunstore.Statements{
		Ready: ready,
		LeaseNotices: `
UPDATE formsvc_notices SET due_at = ?1 WHERE delivery_id IN (
  SELECT n.delivery_id FROM formsvc_notices AS n INDEXED BY formsvc_notices_open
  WHERE NOT n.noted AND n.due_at <= ?2 ORDER BY n.at, n.delivery_id LIMIT CAST(?3 AS BIGINT))
RETURNING delivery_id, account_id, webhook_id, event_id, event_type, attempts, status, error, at,
  coalesce((SELECT w.url FROM formsvc_webhooks AS w WHERE w.id = formsvc_notices.webhook_id), '')`,
		// With one writer, events commit in the order of their numbers, so the second
		// part of a position isn't used.
		LookAtEvents:         lookAtEvents,
		LookAtEarlyEvents:    lookAtEvents,
		LookAtAllEvents:      lookAtAllEvents,
		LookAtAllEarlyEvents: lookAtAllEvents,
		LookBackAtEvents: `
SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload) FROM formsvc_events AS e INDEXED BY formsvc_events_account
WHERE e.account_id = ?1 AND e.seq < ?2 AND ?3 IS NOT NULL ORDER BY e.seq DESC LIMIT CAST(?4 AS BIGINT)`,
		LookAtEventsAbout: `
SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload)
FROM json_each('["' || replace(?4, ',', '","') || '"]') AS j CROSS JOIN formsvc_events AS e ON e.id = j.value
WHERE e.account_id = ?1 AND e.campaign_id = ?2 AND e.response_id = ?3 AND e.type & 65536 = 0
UNION ALL
SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload) FROM formsvc_events AS e INDEXED BY formsvc_events_about
WHERE e.about = ?3 AND e.account_id = ?1 AND e.campaign_id = ?2 AND e.type & 65536 = 0
ORDER BY 2 LIMIT CAST(?5 AS BIGINT)`,
		IndexedBy: "INDEXED BY",
		UseKeys: `
UPDATE formsvc_keys AS k SET used_at = u.used_at
FROM (SELECT value ->> 0 AS account_id, value ->> 1 AS id, value ->> 2 AS used_at FROM json_each(?1)) AS u
WHERE k.id = u.id AND k.account_id = u.account_id AND k.used_at < u.used_at`,
		FoldedEmail: "lower(r.email)", // which folds only ASCII
	}
}
