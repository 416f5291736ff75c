package bunstore

import (
	"context"
	"database/sql"
	"net/url"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

type noticeRow struct {
	bun.BaseModel `bun:"table:formsvc_notices,alias:n"`

	DeliveryID ID `bun:",pk"`
	AccountID  ID
	WebhookID  ID
	EventID    ID
	EventType  int64
	Attempts   int
	Status     int
	Error      string
	At         int64
	URL        string `bun:",scanonly"`
}

func (r *noticeRow) notice() formsvc.Notice {
	t, _ := eventOf(r.EventType)
	return formsvc.Notice{
		DeliveryID: formsvc.ID(r.DeliveryID), AccountID: formsvc.ID(r.AccountID), WebhookID: formsvc.ID(r.WebhookID),
		EventID: formsvc.ID(r.EventID), Event: t, Attempts: r.Attempts, Status: r.Status, Error: r.Error, At: fromMicros(r.At),
	}
}

// failure is notice for the delivery engine.
func (r *noticeRow) failure() delivery.Failure {
	t, _ := eventOf(r.EventType)
	return delivery.Failure{
		Delivery: string(r.DeliveryID), Account: string(r.AccountID), Endpoint: string(r.WebhookID), EventID: string(r.EventID),
		Event:    string(t),
		Attempts: r.Attempts, Status: r.Status, Error: r.Error, At: fromMicros(r.At), Host: hostOf(r.URL),
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Notices implements formsvc.EventStore.
func (s *Store) Notices(ctx context.Context, q formsvc.NoticeQuery) (formsvc.Page[formsvc.Notice], error) {
	return pageOf(ctx, s, "n.delivery_id", q.Page, q.NoTotal, func(sel *bun.SelectQuery) *bun.SelectQuery {
		sel = sel.Where("n.account_id = ?", ID(q.AccountID))
		if q.WebhookID != "" {
			sel = sel.Where("n.webhook_id = ?", ID(q.WebhookID))
		}
		return sel
	}, sure((*noticeRow).notice), sizeless)
}

const selectFailing = "SELECT f.webhook_id, f.account_id, f.failures, f.first_at, f.last_at, f.status, f.error, f.lease + 1, w.url, a.contact" +
	" FROM formsvc_failing AS f JOIN formsvc_webhooks AS w ON w.id = f.webhook_id JOIN formsvc_accounts AS a ON a.id = f.account_id" +
	" WHERE f.failures > 0 AND f.until <= $1 AND f.told_at <= $2 ORDER BY f.first_at, f.webhook_id LIMIT $3"

func scanDigest(rows *sql.Rows, d *formsvc.Digest) error {
	return rows.Scan((*ID)(&d.WebhookID), (*ID)(&d.AccountID), &d.Failures, (*instant)(&d.FirstAt), (*instant)(&d.LastAt),
		&d.Status, &d.Error, &d.Lease, &d.URL, &d.Contact)
}

// ClaimDigests implements formsvc.EventStore.
func (s *Store) ClaimDigests(
	ctx context.Context, now time.Time, every, lease time.Duration, limit int,
) ([]formsvc.Digest, error) {
	if err := s.ready(ctx); err != nil || limit <= 0 {
		return nil, err
	}
	var digests []formsvc.Digest
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) (err error) {
		digests, err = List(ctx, c, scanDigest, selectFailing+s.lock(" OF f SKIP LOCKED"), micros(now), micros(now.Add(-every)), limit)
		if err != nil || len(digests) == 0 {
			return err
		}
		ids := make([]ID, len(digests))
		for i := range digests {
			ids[i] = ID(digests[i].WebhookID)
		}
		_, err = s.build.NewUpdate().Conn(c).Table("formsvc_failing").
			Set("lease = lease + 1, since = ?, until = ?", Never, micros(now.Add(lease))).
			Where("webhook_id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	})
	return digests, err
}

// FinishDigest implements formsvc.EventStore. If the webhook was deleted, its lease was
// deleted with it.
func (s *Store) FinishDigest(ctx context.Context, d formsvc.Digest, at time.Time) error {
	if checkIDs(d.AccountID, d.WebhookID) != nil {
		return formsvc.ErrStale
	}
	return s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		// Failures since the claim are left to the next digest.
		n, err := Affected(s.build.NewUpdate().Conn(c).Table("formsvc_failing").
			Set("failures = CASE WHEN failures > ? THEN failures - ? ELSE 0 END", d.Failures, d.Failures).
			Set("first_at = since, since = ?, told_at = ?, until = ?, lease = lease + 1", Never, micros(at), Never).
			Where("account_id = ? AND webhook_id = ? AND lease = ?", ID(d.AccountID), ID(d.WebhookID), d.Lease).
			Exec(ctx))
		if err == nil && n == 0 {
			err = formsvc.ErrStale
		}
		return err
	})
}

// AddFailures is the end of the statement that adds new failures of a webhook, the row f,
// to those that no digest has reported.
const AddFailures = `
ON CONFLICT (webhook_id) DO UPDATE SET
  failures = f.failures + excluded.failures,
  first_at = CASE WHEN f.failures = 0 OR excluded.first_at < f.first_at THEN excluded.first_at ELSE f.first_at END,
  since = CASE WHEN f.since = -62135596800000000 OR excluded.since < f.since THEN excluded.since ELSE f.since END,
  last_at = CASE WHEN f.failures = 0 OR excluded.last_at >= f.last_at THEN excluded.last_at ELSE f.last_at END,
  status = CASE WHEN f.failures = 0 OR excluded.last_at >= f.last_at THEN excluded.status ELSE f.status END,
  error = CASE WHEN f.failures = 0 OR excluded.last_at >= f.last_at THEN excluded.error ELSE f.error END`
