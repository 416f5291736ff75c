package formsvc

import (
	"context"
	"time"
)

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

// NoticeQuery chooses notices of one account. Pages are ordered by DeliveryID,
// which is the order of the events.
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
func (n Notices) List(ctx context.Context, q NoticeQuery) (_ Page[Notice], err error) {
	defer wrap(&err, "notices")
	q.Page = q.Page.Clamped()
	return n.s.store.Notices(ctx, q)
}

// Digests leases digests that are due, at most one an hour for each webhook. Send each within 5
// minutes and then call [Notices.Sent]; otherwise it becomes due again. Later failures are in the
// next digest.
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
