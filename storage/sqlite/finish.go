package sqlite

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Finish implements bunstore.Backend.
func (*backend) Finish(ctx context.Context, c bun.IConn, done []bunstore.Done) ([]bool, error) {
	accepted := make([]bool, len(done))
	for i := range done {
		var err error
		if accepted[i], err = finish(ctx, c, &done[i]); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

const (
	finishDelivery = `
UPDATE formsvc_deliveries SET state = ?, kind = CASE WHEN ? THEN 1 ELSE kind END, attempts = attempts + ?, due_at = ?,
  lease = lease + 1, updated_at = coalesce(?, updated_at)
WHERE webhook_id = ? AND id = ? AND lease = ?`

	insertAttempt = `
INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer)
SELECT id, attempts, ?, ?, ?, ?, ? FROM formsvc_deliveries WHERE webhook_id = ? AND id = ?`

	// A notice has the event's account, because the webhook may be deleted by now.
	insertNotice = `
INSERT INTO formsvc_notices (delivery_id, account_id, webhook_id, event_id, event_type, attempts, status, error, at,
  due_at, noted)
SELECT d.id, e.account_id, d.webhook_id, d.event_id, d.event_type, d.attempts, ?3, ?4, ?5, ?5, 0
FROM formsvc_deliveries AS d CROSS JOIN formsvc_events AS e ON e.id = d.event_id
WHERE d.webhook_id = ?1 AND d.id = ?2 AND d.kind <> 2 ON CONFLICT DO NOTHING`

	addFailing = `
INSERT INTO formsvc_failing AS f (webhook_id, account_id, failures, first_at, since, last_at, status, error, told_at,
  until, lease)
SELECT w.id, w.account_id, 1, ?2, ?2, ?2, ?3, ?4, ?5, ?5, 0 FROM formsvc_webhooks AS w WHERE w.id = ?1
` + bunstore.AddFailures
)

// finish writes an outcome, with the attempt and the notice of a permanent failure, if its
// lease still holds. A replay that fails leaves no notice.
func finish(ctx context.Context, c bun.IConn, d *bunstore.Done) (accepted bool, err error) {
	a, hook, id := &d.Attempt, raw(formsvc.ID(d.Endpoint)), raw(formsvc.ID(d.ID))
	var ended any // NULL: the delivery was given back without an attempt
	if d.Logged() {
		ended = d.EndedAt
	}
	n, err := bunstore.Affected(c.ExecContext(ctx, finishDelivery, d.State, d.State == 0 && d.Logged(), d.Counted, d.DueAt, ended,
		hook, id, d.Lease))
	if err != nil || n == 0 {
		return false, err
	}
	if d.Logged() {
		_, err = c.ExecContext(ctx, insertAttempt, a.StartedAt.UnixMicro(), a.Duration.Microseconds(), a.Status, d.Error,
			bunstore.NotNull(a.Answer), hook, id)
	}
	if err != nil || d.Result != delivery.Failed {
		return err == nil, err
	}
	n, err = bunstore.Affected(c.ExecContext(ctx, insertNotice, hook, id, a.Status, d.Error, d.EndedAt))
	if err == nil && n > 0 {
		_, err = c.ExecContext(ctx, addFailing, hook, d.EndedAt, a.Status, d.Error, bunstore.Never)
	}
	return err == nil, err
}
