package memory

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// notice records that a delivery failed permanently. The caller holds s.mu.
func (s *Store) notice(e *endpoint, d *queued) {
	last := d.Log[len(d.Log)-1]
	n := formsvc.Notice{
		DeliveryID: d.ID, AccountID: d.AccountID, WebhookID: d.WebhookID, EventID: d.EventID, Event: d.Event,
		Attempts: d.Attempts, Status: last.Status, Error: last.Error, At: d.UpdatedAt,
	}
	e.digest.untold = append(e.digest.untold, n)
	_ = s.notices.add(d.ID, &notice{Notice: n}) // there is none yet: the delivery isn't a replay
}

// Notices implements [formsvc.Store].
func (s *Store) Notices(ctx context.Context, q formsvc.NoticeQuery) (formsvc.Page[formsvc.Notice], error) {
	match := func(n *notice) bool {
		return n.AccountID == q.AccountID && (q.WebhookID == "" || n.WebhookID == q.WebhookID)
	}
	return locked(ctx, s, func() (formsvc.Page[formsvc.Notice], error) {
		return page(&s.notices, q.Page, q.NoTotal, match, func(n *notice) formsvc.Notice { return n.Notice }), nil
	})
}

// Failures implements [delivery.Queue].
func (s *Store) Failures(ctx context.Context, now, until time.Time, limit int) ([]delivery.Failure, error) {
	return locked(ctx, s, func() ([]delivery.Failure, error) {
		open := list(&s.notices, func(n *notice) bool { return !n.noted && !n.until.After(now) }, func(n *notice) *notice { return n })
		slices.SortFunc(open, func(a, b *notice) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.DeliveryID, b.DeliveryID))
		})
		var failures []delivery.Failure
		for _, n := range open[:min(len(open), max(limit, 0))] {
			n.until = kept(until)
			failures = append(failures, delivery.Failure{
				Delivery: string(n.DeliveryID), EventID: string(n.EventID), Event: string(n.Event),
				Endpoint: string(n.WebhookID), Account: string(n.AccountID), Host: s.host(n.WebhookID),
				Attempts: n.Attempts, Status: n.Status, Error: n.Error, At: n.At,
			})
		}
		return failures, nil
	})
}

// host returns the host and port of a webhook's URL, or "" if the webhook was deleted.
// The caller holds s.mu.
func (s *Store) host(webhook formsvc.ID) string {
	e, err := s.endpoints.get(webhook)
	if err != nil {
		return ""
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Noted implements [delivery.Queue].
func (s *Store) Noted(ctx context.Context, deliveries []string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range deliveries {
		if n, err := s.notices.get(formsvc.ID(id)); err == nil {
			n.noted = true
		}
	}
	return nil
}

// ClaimDigests implements [formsvc.Store].
func (s *Store) ClaimDigests(
	ctx context.Context, now time.Time, every, lease time.Duration, limit int,
) ([]formsvc.Digest, error) {
	return locked(ctx, s, func() ([]formsvc.Digest, error) {
		var digests []formsvc.Digest
		for _, id := range s.endpoints.ids {
			e := s.endpoints.rows[id]
			if len(digests) < limit && e.digest.due(now, every) {
				e.digest.claimed = true
				e.digest.lease++
				e.digest.until = kept(now.Add(lease))
				digests = append(digests, e.sumUp(s.accounts.rows[e.AccountID].Contact))
			}
		}
		return digests, nil
	})
}

// due reports whether there are failures to report, no lease is held, and the last digest
// is long enough ago.
func (d *digest) due(now time.Time, every time.Duration) bool {
	if len(d.untold) == 0 || d.claimed && d.until.After(now) {
		return false
	}
	return d.finished.IsZero() || !d.finished.Add(every).After(now)
}

// sumUp returns the digest of all failures that no digest has reported.
func (e *endpoint) sumUp(contact string) formsvc.Digest {
	byTime := func(a, b formsvc.Notice) int { return a.At.Compare(b.At) }
	last := slices.MaxFunc(e.digest.untold, byTime)
	return formsvc.Digest{
		AccountID: e.AccountID, WebhookID: e.ID, Contact: contact, URL: e.URL, Failures: int64(len(e.digest.untold)),
		FirstAt: slices.MinFunc(e.digest.untold, byTime).At, LastAt: last.At, Status: last.Status, Error: last.Error,
		Lease: e.digest.lease,
	}
}

// FinishDigest implements [formsvc.Store]. Failures since the claim are left to the
// next digest. If the webhook was deleted, its lease was deleted with it.
func (s *Store) FinishDigest(ctx context.Context, d formsvc.Digest, at time.Time) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e, err := s.endpoint(formsvc.WebhookKey{AccountID: d.AccountID, ID: d.WebhookID})
	if err != nil || !e.digest.claimed || e.digest.lease != d.Lease {
		return formsvc.ErrStale
	}
	e.digest.claimed = false
	e.digest.finished = kept(at)
	e.digest.untold = slices.Delete(e.digest.untold, 0, int(min(d.Failures, int64(len(e.digest.untold)))))
	return nil
}
