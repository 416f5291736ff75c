package formsvc

import (
	"context"
	"strconv"
	"time"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // waits for its first or next attempt, or is in one
	DeliveryDelivered DeliveryState = "delivered" // the receiver replied with 2xx
	DeliveryFailed    DeliveryState = "failed"    // the last attempt failed
)

// A Delivery is one event for one webhook. A receiver may get a delivery more than once, and
// deliveries in any order; the event's identifier shows duplicates.
type Delivery struct {
	ID        ID // see [DeliveryID]
	AccountID ID
	WebhookID ID
	EventID   ID
	Event     EventType
	Test      bool // of a test event
	State     DeliveryState
	Attempts  int // attempts whose result is known
	// SendingSince is when a process claimed the delivery for the current attempt, which may be a
	// little before its request is sent. It is zero if there is no attempt under way, also if its
	// process died and the lease has ended.
	SendingSince time.Time
	// DueAt is when the next attempt may start. During an attempt it is when that attempt counts as
	// lost. It has no meaning once the delivery is done.
	DueAt     time.Time
	CreatedAt time.Time
	UpdatedAt time.Time // when the last attempt ended; zero before
	Log       []Attempt // oldest first
}

// forgetLost clears SendingSince if the lease has ended. A store doesn't know the time.
func (d *Delivery) forgetLost(now time.Time) {
	if !d.DueAt.After(now) {
		d.SendingSince = time.Time{}
	}
}

// An Attempt is one request of a delivery and its result.
type Attempt struct {
	Number    int // 1 for the first
	StartedAt time.Time
	Duration  time.Duration // in microseconds
	Status    int           // of the HTTP response; 0 if there was none
	Error     string        // the class of the failure, see package delivery; "" if delivered
	Answer    []byte        // the first 4 KiB of the HTTP response's body, unchanged
}

// DeliveryKey names one delivery of one account.
type DeliveryKey struct{ AccountID, ID ID }

// DeliveryQuery chooses deliveries of one webhook.
type DeliveryQuery struct {
	AccountID ID
	WebhookID ID
	State     DeliveryState // "" means every state
	Page      PageQuery
	NoTotal   bool // don't count, which is slow for many deliveries: Total is 0
}

// RedeliverQuery chooses failed deliveries of one webhook for a store.
type RedeliverQuery struct {
	Key          WebhookKey
	Since, Until time.Time     // both inclusive: when the last attempt ended
	At           time.Time     // when the first one is due
	Pace         time.Duration // how much later each further one is due, in the order in which they failed
	Limit        int
}

// QueueStats describes the backlog.
type QueueStats struct {
	// Pending counts deliveries that wait for an attempt or are in one, up to MaxCounted.
	Pending int64
	// OldestDue is the earliest time at which a waiting delivery of an enabled webhook was due;
	// zero if none is due.
	OldestDue time.Time
}

// Deliveries lists deliveries and sends them again. It is safe for concurrent use.
type Deliveries struct{ s *core }

// List returns a page of a webhook's deliveries, with their attempts. It fails with [ErrNotFound]
// if the account has no such webhook.
func (d Deliveries) List(ctx context.Context, q DeliveryQuery) (_ Page[Delivery], err error) {
	defer wrap(&err, "deliveries")
	q.Page = q.Page.Clamped()
	if _, err := d.s.store.Webhook(ctx, WebhookKey{AccountID: q.AccountID, ID: q.WebhookID}); err != nil {
		return Page[Delivery]{}, err
	}
	page, err := d.s.store.Deliveries(ctx, q)
	if err != nil {
		return Page[Delivery]{}, err
	}
	now := d.s.now()
	for i := range page.Items {
		page.Items[i].forgetLost(now)
	}
	return page, nil
}

// Get returns a delivery with its attempts, or [ErrNotFound].
func (d Deliveries) Get(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer wrap(&err, "delivery")
	delivery, err := d.s.store.Delivery(ctx, key)
	if err != nil {
		return Delivery{}, err
	}
	delivery.forgetLost(d.s.now())
	return delivery, nil
}

// Redeliver sends a delivery again, now: the same identifier and bytes, signed with the webhook's
// current secret, even if the webhook is disabled. A finished delivery gets one attempt; one that
// waits for a retry gets it now. It fails with [ErrNotFound], also if the event was pruned, and
// with [ErrConflict] while an attempt is under way.
func (d Deliveries) Redeliver(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer wrap(&err, "redeliver")
	return once(ctx, d.s, key.AccountID, func() (Delivery, error) {
		now := d.s.now()
		delivery, err := d.s.store.Redeliver(ctx, key, now, func(delivery *Delivery) (Change, error) {
			delivery.forgetLost(now)
			details := map[string]string{"delivery": string(delivery.ID)}
			return Change{
				Audit:       d.s.audit(key.AccountID, AuditWebhookRedelivered, delivery.WebhookID, details),
				Idempotency: record(d.s, key.AccountID, "", delivery),
			}, nil
		})
		if err != nil {
			return Delivery{}, err
		}
		delivery.forgetLost(now)
		return delivery, nil
	})
}

// How RedeliverFailed proceeds.
const (
	redeliverBatch = 500
	// redeliverPace protects a receiver that has just recovered: 50 a second, after everything that
	// is new.
	redeliverPace = 20 * time.Millisecond
)

// RedeliverFailed redelivers the webhook's deliveries that failed permanently at since or later, as
// [Deliveries.Redeliver] does, 50 a second, and returns their number. Deliveries that fail during
// the call are not included. It works in atomic writes of 500 deliveries, the last of which has the
// record of [Service.Once]. If it fails midway, the deliveries so far are under way; call it again for
// the rest. It fails with [ErrNotFound].
func (d Deliveries) RedeliverFailed(ctx context.Context, key WebhookKey, since time.Time) (_ int, err error) {
	defer wrap(&err, "redeliver")
	return once(ctx, d.s, key.AccountID, func() (int, error) { return d.redeliverFailed(ctx, key, since) })
}

func (d Deliveries) redeliverFailed(ctx context.Context, key WebhookKey, since time.Time) (int, error) {
	if err := d.s.repeated(ctx, key.AccountID); err != nil {
		return 0, err
	}
	if _, err := d.s.store.Webhook(ctx, key); err != nil {
		return 0, err
	}
	now := d.s.now()
	total := 0
	for {
		n, err := d.s.store.RedeliverFailed(ctx, RedeliverQuery{
			Key: key, Since: since, Until: now, At: now.Add(time.Duration(total) * redeliverPace), Pace: redeliverPace,
			Limit: redeliverBatch,
		}, func(n int) (Change, error) {
			if n == redeliverBatch {
				return Change{}, nil // the last batch records all
			}
			details := map[string]string{"since": since.UTC().Format(time.RFC3339), "deliveries": strconv.Itoa(total + n)}
			return Change{
				Audit:       d.s.audit(key.AccountID, AuditWebhookRedelivered, key.ID, details),
				Idempotency: record(d.s, key.AccountID, "", new(total+n)),
			}, nil
		})
		total += n
		if err != nil {
			return total, err
		}
		if n < redeliverBatch {
			return total, nil
		}
	}
}

// Waiting returns how many deliveries of a webhook wait for an attempt or are in one,
// up to [MaxWaiting]. An unknown webhook has none.
func (d Deliveries) Waiting(ctx context.Context, key WebhookKey) (_ int64, err error) {
	defer wrap(&err, "waiting")
	return d.s.store.Waiting(ctx, key, MaxWaiting)
}

// Stats returns the backlog of all accounts together.
func (d Deliveries) Stats(ctx context.Context) (_ QueueStats, err error) {
	defer wrap(&err, "queue")
	return d.s.store.QueueStats(ctx, d.s.now(), MaxCounted)
}
