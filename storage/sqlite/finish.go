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

// Finish implements bunstore.Backend.
func (b *backend) Finish(ctx context.Context, c bun.IConn, done []bunstore.Done) ([]bool, error) {
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
	if err := b.attempts.insert(ctx, c, f.attempts); err != nil {
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
