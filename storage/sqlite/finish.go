package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

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
UPDATE formsvc_deliveries SET state = ?4, kind = CASE WHEN ?4 = 0 AND ?5 > 0 THEN 1 ELSE kind END,
  attempts = attempts + ?5, due_at = ?6, lease = lease + 1, updated_at = CASE WHEN ?5 > 0 THEN ?7 ELSE updated_at END
WHERE webhook_id = ?1 AND id = ?2 AND lease = ?3 RETURNING attempts, kind`

	insertAttempt = "INSERT INTO formsvc_attempts (delivery_id, number, started_at, duration, status, error, answer) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?)"

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
SELECT w.id, w.account_id, 1, ?2, ?2, ?2, ?3, ?4, ?5, ?5, 0 FROM formsvc_webhooks AS w WHERE w.id = ?1
` + bunstore.AddFailures
)

// finish writes an outcome, with the attempt and the notice of a permanent failure, if its
// lease still holds.
func finish(ctx context.Context, c bun.IConn, d *bunstore.Done) (accepted bool, err error) {
	var number, kind int
	err = c.QueryRowContext(ctx, finishDelivery, d.Endpoint, d.ID, d.Lease, d.State, d.Counted, d.DueAt, d.EndedAt).
		Scan(&number, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	a := &d.Attempt
	if err == nil && d.Logged() {
		_, err = c.ExecContext(ctx, insertAttempt, d.ID, number, a.StartedAt.UnixMicro(), a.Duration.Microseconds(), a.Status,
			d.Error, notNull(a.Answer))
	}
	if err == nil && d.Result == delivery.Failed && delivery.Kind(kind) != delivery.Replay {
		_, err = c.ExecContext(ctx, insertNotice, d.Endpoint, d.ID, a.Status, d.Error, d.EndedAt)
		if err == nil {
			_, err = c.ExecContext(ctx, addFailing, d.Endpoint, d.EndedAt, a.Status, d.Error, bunstore.Never)
		}
	}
	return err == nil, err
}
