package formsvc

import (
	"context"
	"fmt"
	"time"
)

// A Notice says that a delivery failed for the last time. It is kept in the same
// unit as the failure and goes with the event.
type Notice struct {
	DeliveryID ID // also the notice's own identifier
	AccountID  ID
	WebhookID  ID
	EventID    ID
	Event      EventType
	Attempts   int
	Status     int    // of the last answer; 0 when there was none
	Error      string // the class of the last failure, see package delivery
	At         time.Time
}

// NoticeQuery chooses notices of one account. Pages are ordered by DeliveryID,
// which is the order of the events.
type NoticeQuery struct {
	AccountID ID
	WebhookID ID // "" means all
	Page      PageQuery
	NoTotal   bool // don't count, which costs the more the more there are: Total is 0
}

// A Digest sums up the failures of a webhook that nobody was written about yet.
type Digest struct {
	AccountID ID
	WebhookID ID
	Contact   string // of the account; may be ""
	URL       string // of the webhook; may carry a token, so tell people its host only
	Failures  int64
	FirstAt   time.Time
	LastAt    time.Time
	Status    int    // of the last answer; 0 when there was none
	Error     string // the class of the last failure
	Lease     int64  // the fencing token
}

// digestLease is how long one process has to send a digest.
const digestLease = 5 * time.Minute

// Notices tells of deliveries that failed for the last time. It is safe for
// concurrent use.
type Notices struct{ s *core }

// List returns a page of an account's notices.
func (n Notices) List(ctx context.Context, q NoticeQuery) (_ Page[Notice], err error) {
	defer n.s.span(&ctx, "Notices.List").end(&err)
	q.Page = q.Page.Clamped()
	page, err := n.s.store.Notices(ctx, q)
	if err != nil {
		return Page[Notice]{}, fmt.Errorf("formsvc: notices: %w", err)
	}
	return page, nil
}

// Digests leases digests that are due, at most one an hour for each webhook. Who
// gets one sends it within 5 minutes and then calls [Notices.Sent]; otherwise it
// is due again after that time. Failures in between wait for the next one.
func (n Notices) Digests(ctx context.Context, limit int) (_ []Digest, err error) {
	defer n.s.span(&ctx, "Notices.Digests").end(&err)
	digests, err := n.s.store.ClaimDigests(ctx, n.s.now(), DigestInterval, digestLease, limit)
	if err != nil {
		return nil, fmt.Errorf("formsvc: digests: %w", err)
	}
	return digests, nil
}

// Sent tells that a digest was sent, or that there is nobody to send it to. It
// fails with [ErrStale] when the lease passed on to somebody else.
func (n Notices) Sent(ctx context.Context, d Digest) (err error) {
	defer n.s.span(&ctx, "Notices.Sent").end(&err)
	if err := n.s.store.FinishDigest(ctx, d, n.s.now()); err != nil {
		return fmt.Errorf("formsvc: digest: %w", err)
	}
	return nil
}
