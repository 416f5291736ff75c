package formsvc

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// SendingSince is when a process claimed the delivery for the current attempt, which may be a little before its
	// request is sent. It is zero if there is no attempt under way, also if its process died and the lease has ended.
	SendingSince time.Time
	// DueAt is when the next attempt may start. During an attempt it is when that attempt counts as
	// lost. It has no meaning once the delivery is done.
	DueAt     time.Time
	CreatedAt time.Time
	UpdatedAt time.Time // when the last attempt ended; zero before
	Log       []Attempt // the last [KeptAttempts], oldest first
}

// forgetLost clears SendingSince if the lease has ended. A store doesn't know the time.
func (d *Delivery) forgetLost(now time.Time) {
	if !d.DueAt.After(now) {
		d.SendingSince = time.Time{}
	}
}

// KeptAttempts is how many attempts of a delivery are kept and shown: the last ones. A delivery can be sent again without limit.
const KeptAttempts = 10

// An Attempt is one request of a delivery and its result.
type Attempt struct {
	Number    int // 1 for the first
	StartedAt time.Time
	Duration  time.Duration // truncated to microseconds
	Status    int           // of the HTTP response; 0 if there was none
	Error     string        // the class of the failure, see package delivery; "" if delivered
	Answer    []byte        // the first 4 KiB of the HTTP response's body, unchanged
}

// AppendJSON appends the delivery as the JSON object that clients get.
func (d *Delivery) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"uuid":`, string(d.ID))
	b = appendText(b, `,"webhookUuid":`, string(d.WebhookID))
	b = appendText(b, `,"eventUuid":`, string(d.EventID))
	b = appendText(b, `,"event":`, string(d.Event))
	if d.Test {
		b = append(b, `,"test":true`...)
	}
	b = appendText(b, `,"state":`, string(d.State))
	b = fmt.Appendf(b, `,"attemptCount":%d`, d.Attempts)
	b = appendTime(b, `,"sendingSince":`, d.SendingSince)
	var next time.Time
	if d.State == DeliveryPending && d.SendingSince.IsZero() {
		next = d.DueAt
	}
	b = appendTime(b, `,"nextAttemptAt":`, next)
	b = appendTime(b, `,"createdAt":`, d.CreatedAt)
	b = appendTime(b, `,"updatedAt":`, d.UpdatedAt)
	b = append(b, `,"attempts":[`...)
	for i := range d.Log {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.Log[i].appendJSON(b)
	}
	return append(b, ']', '}')
}

func (a *Attempt) appendJSON(b []byte) []byte {
	b = appendTime(fmt.Appendf(b, `{"number":%d`, a.Number), `,"startedAt":`, a.StartedAt)
	b = strconv.AppendFloat(append(b, `,"durationMs":`...), float64(a.Duration.Microseconds())/1e3, 'f', -1, 64)
	if a.Status == 0 {
		b = append(b, `,"status":null`...)
	} else {
		b = fmt.Appendf(b, `,"status":%d`, a.Status)
	}
	b = appendOptional(b, `,"error":`, a.Error)
	return append(appendText(b, `,"answer":`, string(a.Answer)), '}')
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
	// OldestDue is the earliest time at which a waiting delivery of an enabled webhook was due; zero if none is due.
	OldestDue time.Time
}

// Deliveries lists deliveries and sends them again. It is safe for concurrent use.
type Deliveries struct{ s *core }

// List returns a page of a webhook's deliveries, with their attempts. It fails with [ErrNotFound]
// if the account has no such webhook.
func (d Deliveries) List(ctx context.Context, q DeliveryQuery) (page Page[Delivery], err error) {
	return listed("deliveries", &q.Page, func() (Page[Delivery], error) {
		if _, err = d.s.store.Webhook(ctx, WebhookKey{AccountID: q.AccountID, ID: q.WebhookID}); err != nil {
			return page, err
		}
		page, err = d.s.store.Deliveries(ctx, q)
		now := d.s.now()
		for i := range page.Items {
			page.Items[i].forgetLost(now)
		}
		return page, err
	})
}

// Get returns a delivery with its attempts, or [ErrNotFound].
func (d Deliveries) Get(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer wrap(&err, "delivery")
	delivery, err := d.s.store.Delivery(ctx, key)
	delivery.forgetLost(d.s.now())
	return delivery, err
}

// Redeliver sends a delivery again, now: the same identifier and bytes, signed with the webhook's current secret, even
// if the webhook is disabled. A finished delivery gets one attempt; one that waits for a retry gets it now. It fails
// with [ErrNotFound], also if the event was pruned, with [ErrConflict] while an attempt is under way,
// and with [ErrResponseDeleted] unless the event has no answers.
func (d Deliveries) Redeliver(ctx context.Context, key DeliveryKey) (_ Delivery, err error) {
	defer wrap(&err, "redeliver")
	return once(ctx, d.s, key.AccountID, func() (Delivery, error) {
		now := d.s.now()
		if err := d.checkResponse(ctx, key); err != nil {
			return Delivery{}, err
		}
		delivery, err := d.s.store.Redeliver(ctx, key, now, func(delivery *Delivery) (Change, error) {
			delivery.forgetLost(now)
			details := map[string]string{"delivery": string(delivery.ID)}
			return Change{
				Audit:       d.s.audit(key.AccountID, AuditWebhookRedelivered, delivery.WebhookID, details),
				Idempotency: record(d.s, key.AccountID, "", delivery),
			}, nil
		})
		delivery.forgetLost(now)
		return delivery, err
	})
}

// checkResponse fails with [ErrResponseDeleted] if the delivery has the answers of a response that was deleted.
func (d Deliveries) checkResponse(ctx context.Context, key DeliveryKey) error {
	delivery, err := d.s.store.Delivery(ctx, key)
	if err != nil || delivery.Test || slices.Contains(WithoutAnswers(), delivery.Event) {
		return err
	}
	e, err := d.s.store.Event(ctx, key.AccountID, delivery.EventID)
	if err != nil {
		return err
	}
	_, err = d.s.store.Response(ctx, ResponseKey{AccountID: key.AccountID, CampaignID: e.CampaignID, ID: e.ResponseID})
	if errors.Is(err, ErrNotFound) {
		return ErrResponseDeleted
	}
	return err
}

// How RedeliverFailed proceeds.
const (
	redeliverBatch = 500
	// redeliverPace protects a receiver that has just recovered: 50 a second, after everything that is new.
	redeliverPace = 20 * time.Millisecond
)

// RedeliverFailed redelivers the webhook's deliveries that failed permanently at since or later, as
// [Deliveries.Redeliver] does, 50 a second, and returns their number. Deliveries that fail during the call are not
// included. It works in atomic writes of 500 deliveries, the last of which has the record of [Call]. If it
// fails midway, the deliveries so far are under way; call it again for the rest. It fails with [ErrNotFound].
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

// A DeliverySample summarizes the first deliveries of a webhook in one part of a time range.
type DeliverySample struct {
	From                       time.Time // when the part begins; it ends with the next one
	Delivered, Failed, Pending int       // by [DeliveryState]
	More                       bool      // there were more deliveries, which are not counted
	// Median and P95 are the p50 and p95 of the durations of the deliveries' last attempts, or 0 if there are none.
	Median, P95 time.Duration
}

// A SampleQuery divides the deliveries of a webhook by time; see [Deliveries.Sample].
type SampleQuery struct {
	Webhook  WebhookKey
	From, To time.Time // in whole milliseconds; To is later, and not included
	Parts    int       // of equal length: 1 to MaxSampleParts, other numbers are clamped
	Each     int       // deliveries that are read of each part: 1 to MaxSampleEach, other numbers are clamped
}

// Sample summarizes the oldest deliveries of each part of a time range; a delivery belongs to the time of its event. The cost
// depends on Parts and Each only. It fails with a *[ValidationError] unless To is after From, and with [ErrNotFound].
func (d Deliveries) Sample(ctx context.Context, q SampleQuery) (_ []DeliverySample, err error) {
	defer wrap(&err, "sample")
	from, to := milliseconds(q.From), milliseconds(q.To)
	if !to.After(from) {
		return nil, invalid("/to", "out_of_range", "must be later than from")
	}
	if _, err := d.s.store.Webhook(ctx, q.Webhook); err != nil {
		return nil, err
	}
	parts, each := min(max(q.Parts, 1), MaxSampleParts), min(max(q.Each, 1), MaxSampleEach)
	samples := make([]DeliverySample, parts)
	begin := func(i int) time.Time {
		// Division comes first: multiplying a long time would overflow.
		length, n, all := to.Sub(from), time.Duration(i), time.Duration(parts)
		return milliseconds(from.Add(length/all*n + length%all*n/all))
	}
	for i := range samples {
		samples[i].From = begin(i)
		page, err := d.s.store.Deliveries(ctx, DeliveryQuery{
			AccountID: q.Webhook.AccountID, WebhookID: q.Webhook.ID, NoTotal: true,
			Page: PageQuery{Limit: each + 1, After: beforeID(samples[i].From), Ascending: true},
		})
		if err != nil {
			return nil, err
		}
		samples[i].sum(page.Items, each, beforeID(begin(i+1)))
	}
	return samples, nil
}

// sum counts up to each deliveries before end, and measures their last attempts.
func (s *DeliverySample) sum(list []Delivery, each int, end ID) {
	var took []time.Duration
	for i := range list {
		d := &list[i]
		if d.ID > end || i == each {
			s.More = d.ID <= end
			break
		}
		switch d.State {
		case DeliveryDelivered:
			s.Delivered++
		case DeliveryFailed:
			s.Failed++
		case DeliveryPending:
			s.Pending++
		}
		if n := len(d.Log); n > 0 {
			took = append(took, d.Log[n-1].Duration)
		}
	}
	slices.Sort(took)
	s.Median, s.P95 = percentile(took, 50), percentile(took, 95)
}

// percentile returns the given percentile of sorted durations, or 0 if there are none.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// beforeID returns a text right before [FloorID]: it sorts after every version 7 ID created before
// t, to the millisecond, and before all others. No ID is equal to it.
func beforeID(t time.Time) ID {
	const timeDigits = len("00000000-0000-")
	return FloorID(t)[:timeDigits] + "0000-0000-000000000000"
}

// A Notice says that a delivery has failed permanently. It is written in the same atomic write as
// the failure and deleted with the event.
type Notice struct {
	DeliveryID ID // also the notice's own identifier
	AccountID  ID
	WebhookID  ID
	EventID    ID
	Event      EventType
	Attempts   int
	Status     int    // of the last HTTP response; 0 if there was none
	Error      string // the class of the last failure, see package delivery
	At         time.Time
}

// NoticeQuery chooses notices of one account. Pages are ordered by DeliveryID, which is the order of the events.
type NoticeQuery struct {
	AccountID ID
	WebhookID ID // "" means all
	Page      PageQuery
	NoTotal   bool // don't count, which is slow for many notices: Total is 0
}

// A Digest summarizes the failures of a webhook that no e-mail has reported yet.
type Digest struct {
	AccountID ID
	WebhookID ID
	Contact   string // of the account; may be ""
	URL       string // of the webhook; may contain a token, so show only its host
	Failures  int64
	FirstAt   time.Time
	LastAt    time.Time
	Status    int    // of the last HTTP response; 0 if there was none
	Error     string // the class of the last failure
	Lease     int64  // the fencing token
}

// digestLease is how long a process has to send a digest.
const digestLease = 5 * time.Minute

// Notices lists deliveries that failed permanently. It is safe for concurrent use.
type Notices struct{ s *core }

// List returns a page of an account's notices.
func (n Notices) List(ctx context.Context, q NoticeQuery) (Page[Notice], error) {
	return listed("notices", &q.Page, func() (Page[Notice], error) { return n.s.store.Notices(ctx, q) })
}

// Digests leases digests that are due, at most one an hour for each webhook. Send each within 5 minutes and then call
// [Notices.Sent]; otherwise it becomes due again. Later failures are in the next digest.
func (n Notices) Digests(ctx context.Context, limit int) (_ []Digest, err error) {
	defer wrap(&err, "digests")
	return n.s.store.ClaimDigests(ctx, n.s.now(), DigestInterval, digestLease, limit)
}

// Sent records that a digest was sent, or that it has no recipient. It fails with [ErrStale] if
// another process has the lease now.
func (n Notices) Sent(ctx context.Context, d Digest) (err error) {
	defer wrap(&err, "digest")
	return n.s.store.FinishDigest(ctx, d, n.s.now())
}
