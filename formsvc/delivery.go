package formsvc

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// DeliveryState is how far a delivery got.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // waits for an attempt, the first or a later one, or is in one
	DeliveryDelivered DeliveryState = "delivered" // the receiver answered 2xx
	DeliveryFailed    DeliveryState = "failed"    // the last attempt failed
)

// A Delivery is one event on its way to one webhook. Deliveries may be repeated and
// may overtake each other; the event's identifier tells repetitions.
type Delivery struct {
	ID        ID // see [DeliveryID]
	AccountID ID
	WebhookID ID
	EventID   ID
	Event     EventType
	Test      bool // of a test event
	State     DeliveryState
	Attempts  int // attempts whose result is known
	// SendingSince is when a process took the delivery for the attempt that is under
	// way, which may be a little before its request is sent. It is zero while there is
	// none, also when its process died and the lease has ended.
	SendingSince time.Time
	// DueAt is when the next attempt may start; during one, when it counts as
	// lost. It says nothing once the delivery is done.
	DueAt     time.Time
	CreatedAt time.Time
	UpdatedAt time.Time // when the last attempt ended; zero before
	Log       []Attempt // oldest first
}

// forgetLost takes back that an attempt is under way whose lease has ended. A store
// does not know the time.
func (d *Delivery) forgetLost(now time.Time) {
	if !d.DueAt.After(now) {
		d.SendingSince = time.Time{}
	}
}

// An Attempt is one request of a delivery and what came of it.
type Attempt struct {
	Number    int // 1 for the first
	StartedAt time.Time
	Duration  time.Duration // in microseconds
	Status    int           // of the answer; 0 when there was none
	Error     string        // the class of the failure, see package delivery; "" when delivered
	Answer    []byte        // the first 4 KiB of the answer's body, as they came
}

// DeliveryKey names one delivery of one account.
type DeliveryKey struct{ AccountID, ID ID }

// DeliveryQuery chooses deliveries of one webhook.
type DeliveryQuery struct {
	AccountID ID
	WebhookID ID
	State     DeliveryState // "" means every state
	Page      PageQuery
	NoTotal   bool // don't count, which costs the more the more there are: Total is 0
}

// RedeliverQuery chooses failed deliveries of one webhook for a store.
type RedeliverQuery struct {
	Key          WebhookKey
	Since, Until time.Time     // both inclusive: when the last attempt ended
	At           time.Time     // when the first one is due
	Pace         time.Duration // how much later each of the others is, by when they failed
	Limit        int
}

// A QueueQuery says of which deliveries a store counts those that wait.
type QueueQuery struct {
	Webhook *WebhookKey // nil means all of all accounts
	Limit   int64       // counting ends there
	Now     time.Time
}

// QueueStats says how much is waiting.
type QueueStats struct {
	// Pending counts deliveries that wait for an attempt or are in one, up to the
	// limit of the query, which is MaxCounted for all accounts together.
	Pending int64
	// OldestDue is since when the longest waiting delivery of a webhook that is
	// not disabled is due; zero when none is.
	OldestDue time.Time
}

// Deliveries shows what was sent to webhooks, and sends it again. It is safe for
// concurrent use.
type Deliveries struct{ s *core }

// List returns a page of a webhook's deliveries, with their attempts. It fails
// with [ErrNotFound] when the account has no such webhook.
func (d Deliveries) List(ctx context.Context, q DeliveryQuery) (_ Page[Delivery], err error) {
	defer d.s.span(&ctx, "Deliveries.List").end(&err)
	q.Page = q.Page.Clamped()
	if _, err := d.s.store.Webhook(ctx, WebhookKey{AccountID: q.AccountID, ID: q.WebhookID}); err != nil {
		return Page[Delivery]{}, fmt.Errorf("formsvc: deliveries: %w", err)
	}
	page, err := d.s.store.Deliveries(ctx, q)
	if err != nil {
		return Page[Delivery]{}, fmt.Errorf("formsvc: deliveries: %w", err)
	}
	now := d.s.now()
	for i := range page.Items {
		page.Items[i].forgetLost(now)
	}
	return page, nil
}

// Get returns a delivery with its attempts, or [ErrNotFound].
func (d Deliveries) Get(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer d.s.span(&ctx, "Deliveries.Get").end(&err)
	delivery, err := d.s.store.Delivery(ctx, key)
	if err != nil {
		return Delivery{}, fmt.Errorf("formsvc: delivery: %w", err)
	}
	delivery.forgetLost(d.s.now())
	return delivery, nil
}

// Redeliver sends a delivery again, now: the same identifier and bytes, signed
// with the webhook's secret of today, also while the webhook is disabled. One
// that was done has one attempt; one that waits for a retry has it now. It fails
// with [ErrNotFound], also when its event was pruned, and with [ErrConflict]
// while an attempt is under way.
func (d Deliveries) Redeliver(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer d.s.span(&ctx, "Deliveries.Redeliver").end(&err)
	now := d.s.now()
	delivery, err := d.s.store.Redeliver(ctx, key, now, func(delivery *Delivery) (Change, error) {
		delivery.forgetLost(now)
		details := map[string]string{"delivery": string(delivery.ID)}
		return Change{
			Audit:       d.s.audit(key.AccountID, AuditWebhookRedelivered, delivery.WebhookID, details),
			Idempotency: d.s.record(delivery),
		}, nil
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("formsvc: redeliver: %w", err)
	}
	delivery.forgetLost(now)
	return delivery, nil
}

// How RedeliverFailed goes on.
const (
	redeliverBatch = 500
	// redeliverPace keeps a receiver that just came back from being overrun: 50
	// a second, after everything that is new.
	redeliverPace = 20 * time.Millisecond
)

// RedeliverFailed sends every delivery of a webhook again that failed for the
// last time at since or later, as [Deliveries.Redeliver] does, 50 a second, and
// returns how many these are. What fails again meanwhile is not among them. When
// it fails on the way, those counted are under way; calling it again goes on, and
// counts the rest. It fails with [ErrNotFound].
//
// They are sent in units of 500, the last of which has the record of [Service.Once].
// When the same call runs on two nodes at once, both take their share of what there
// is, one is answered for, and what was in the last unit of the other stays failed.
func (d Deliveries) RedeliverFailed(ctx context.Context, key WebhookKey, since time.Time) (_ int, err error) {
	defer d.s.span(&ctx, "Deliveries.RedeliverFailed").end(&err)
	if err := d.s.repeated(ctx); err != nil {
		return 0, fmt.Errorf("formsvc: redeliver: %w", err)
	}
	if _, err := d.s.store.Webhook(ctx, key); err != nil {
		return 0, fmt.Errorf("formsvc: redeliver: %w", err)
	}
	now := d.s.now()
	total := 0
	for {
		n, err := d.s.store.RedeliverFailed(ctx, RedeliverQuery{
			Key: key, Since: since, Until: now, At: now.Add(time.Duration(total) * redeliverPace), Pace: redeliverPace,
			Limit: redeliverBatch,
		}, func(n int) (Change, error) {
			if n == redeliverBatch {
				return Change{}, nil // the last batch tells of all
			}
			details := map[string]string{"since": since.UTC().Format(time.RFC3339), "deliveries": strconv.Itoa(total + n)}
			return Change{
				Audit:       d.s.audit(key.AccountID, AuditWebhookRedelivered, key.ID, details),
				Idempotency: d.s.record(new(total + n)),
			}, nil
		})
		total += n
		if err != nil {
			return total, fmt.Errorf("formsvc: redeliver: %w", err)
		}
		if n < redeliverBatch {
			return total, nil
		}
	}
}

// Waiting returns how many deliveries of a webhook wait for an attempt or are in one,
// up to [MaxWaiting]. An unknown webhook has none.
func (d Deliveries) Waiting(ctx context.Context, key WebhookKey) (_ int64, err error) {
	defer d.s.span(&ctx, "Deliveries.Waiting").end(&err)
	stats, err := d.s.store.QueueStats(ctx, QueueQuery{Webhook: &key, Limit: MaxWaiting, Now: d.s.now()})
	if err != nil {
		return 0, fmt.Errorf("formsvc: waiting: %w", err)
	}
	return stats.Pending, nil
}

// Stats returns how much is waiting, for all accounts together.
func (d Deliveries) Stats(ctx context.Context) (_ QueueStats, err error) {
	defer d.s.span(&ctx, "Deliveries.Stats").end(&err)
	stats, err := d.s.store.QueueStats(ctx, QueueQuery{Limit: MaxCounted, Now: d.s.now()})
	if err != nil {
		return QueueStats{}, fmt.Errorf("formsvc: queue: %w", err)
	}
	return stats, nil
}
