package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A claim makes a delivery due again when its lease ends; due_at is the only record of
// that. Nothing has to look for lost claims, and one index suffices.
//
// The fencing token, lease, is odd while a delivery is claimed. A claim sets it to 16
// times the microsecond of the claim, plus 1, or to the next odd number if that is
// greater. So it grows with each claim, and tells the time of the claim without another
// column.

// tokenSteps is the number of tokens per microsecond.
const tokenSteps = 16

// claimedAt returns when a delivery was claimed, by its token; the zero time if it isn't
// claimed.
func claimedAt(lease int64) time.Time {
	if lease&1 == 0 {
		return time.Time{}
	}
	return fromMicros(lease / tokenSteps)
}

// Ready implements delivery.Queue.
func (s *Store) Ready(ctx context.Context, now time.Time) ([]delivery.Endpoint, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	due, err := s.backend.Ready(ctx, s.queue, micros(now))
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	ready := make([]delivery.Endpoint, len(due))
	for i := range due {
		ready[i] = s.endpoint(&due[i], micros(now))
	}
	return ready, nil
}

// A Due is an endpoint with deliveries that are due, with its sealed values.
type Due struct {
	Sealed

	ID, Account   ID
	URL           string
	PreviousUntil int64
}

// ScanDue reads a webhook's identifier, account, url, secret, previous secret with its expiry,
// and headers.
func ScanDue(rows *sql.Rows, d *Due) error {
	return rows.Scan(&d.ID, &d.Account, &d.URL, &d.Secret, &d.PreviousSecret, &d.PreviousUntil, &d.Headers)
}

// endpoint opens the sealed values. If one can't be opened, the error becomes the reason
// that nothing can be sent.
func (s *Store) endpoint(d *Due, now int64) delivery.Endpoint {
	if d.PreviousUntil <= now {
		d.PreviousSecret = ""
	}
	e := delivery.Endpoint{ID: string(d.ID), Account: string(d.Account), URL: d.URL}
	secret, previous, headers, err := s.open(d.ID, &d.Sealed)
	if e.Err = err; err == nil {
		e.Secret, e.Previous, e.Headers = secret, previous, httpHeaders(headers)
	}
	return e
}

// ScanClaim reads the identifiers of a delivery, its event and its webhook, the event's type, the kind, the attempts,
// the size and the token.
func ScanClaim(rows *sql.Rows, c *delivery.Claim) error {
	var event int64
	err := rows.Scan((*ID)(&c.ID), (*ID)(&c.EventID), (*ID)(&c.Endpoint), &event, &c.Kind, &c.Attempts, &c.Size, &c.Lease)
	t, _ := eventOf(event)
	c.Event = string(t)
	return err
}

// Claim implements delivery.Queue.
func (s *Store) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	// An endpoint that isn't a canonical identifier can't exist.
	shares := slices.DeleteFunc(slices.Clone(req.Shares), func(share delivery.Share) bool {
		return share.N <= 0 || checkIDs(formsvc.ID(share.Endpoint)) != nil
	})
	if len(shares) == 0 {
		return nil, nil
	}
	var claims []delivery.Claim
	err := s.single(ctx, func(ctx context.Context, c *Tx) (err error) {
		claims, err = s.backend.Claim(ctx, c, shares, micros(req.Now), micros(req.Now.Add(req.Lease)))
		return err
	})
	if err != nil {
		return nil, err
	}
	sortClaims(claims, shares)
	return claims, nil
}

// sortClaims sorts claims in the order of the shares, those of an endpoint by kind and then by age.
func sortClaims(claims []delivery.Claim, shares []delivery.Share) {
	late := make(map[string]bool, len(shares))
	order := make(map[string]int, len(shares))
	for i, share := range shares {
		late[share.Endpoint], order[share.Endpoint] = share.LateFirst, i
	}
	rank := func(c *delivery.Claim) delivery.Kind {
		if late[c.Endpoint] && c.Kind == delivery.First {
			return delivery.Replay + 1
		}
		return c.Kind
	}
	slices.SortFunc(claims, func(a, b delivery.Claim) int {
		// Identifiers are in order of age.
		return cmp.Or(order[a.Endpoint]-order[b.Endpoint], cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.ID, b.ID))
	})
}

// Payloads implements delivery.Queue.
func (s *Store) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	payloads := make(map[string]delivery.Payload, len(events))
	_, err := List(ctx, s.queue, func(rows *sql.Rows, id *ID) error {
		var p delivery.Payload
		err := rows.Scan(id, &p.Body, &p.TraceParent)
		payloads[string(*id)] = p
		return err
	}, "SELECT id, payload, coalesce(traceparent, '') FROM formsvc_events WHERE id "+s.dialect.Among, s.dialect.AsList(sortedIDs(events)))
	return payloads, s.backend.Classify(err)
}

// A Done is how an outcome changes the row of a delivery.
type Done struct {
	*delivery.Outcome

	State   int
	Counted int    // attempts to add; with State 0 the delivery will be retried
	DueAt   int64  // when pending
	EndedAt int64  // when the attempt ended
	Error   string // Attempt.Error, cleaned so that it can be stored
	index   int
}

// Logged reports whether the attempt is recorded.
func (d *Done) Logged() bool { return d.Counted > 0 }

// Finish implements delivery.Queue.
func (s *Store) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	done := doneOf(outcomes)
	if len(done) == 0 {
		return make([]bool, len(outcomes)), nil
	}
	var accepted []bool
	err := s.single(ctx, func(ctx context.Context, c *Tx) error {
		accepted = make([]bool, len(outcomes))
		oks, err := s.backend.Finish(ctx, c, done)
		for i, ok := range oks {
			accepted[done[i].index] = ok
			if d := &done[i]; err == nil && ok && d.Logged() && d.Attempt.Number > formsvc.KeptAttempts {
				hook, id := ID(d.Endpoint), ID(d.ID)
				_, err = s.build.NewDelete().Conn(c).TableExpr("formsvc_attempts").Where("delivery_id = ?", id).
					Where("number <= (SELECT attempts FROM formsvc_deliveries WHERE webhook_id = ? AND id = ?) - ?", hook, id, formsvc.KeptAttempts).Exec(ctx)
			}
		}
		return err
	})
	return accepted, err
}

// doneOf returns the outcomes that can belong to claims, each once, in the order of their
// rows, so that transactions that write the same rows don't deadlock.
func doneOf(outcomes []delivery.Outcome) []Done {
	done := make([]Done, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		// Only a claimed delivery has an odd lease.
		if o.Lease&1 == 0 || checkIDs(formsvc.ID(o.ID), formsvc.ID(o.Endpoint)) != nil {
			continue
		}
		d := Done{
			Outcome: o, Counted: 1, DueAt: micros(o.Due), EndedAt: micros(o.Attempt.StartedAt.Add(o.Attempt.Duration)),
			// The engine sets this text, but a queue must not fail because of a caller's
			// text.
			Error: strings.ReplaceAll(strings.ToValidUTF8(o.Attempt.Error, "\uFFFD"), "\x00", "\uFFFD"), index: i,
		}
		switch o.Result {
		case delivery.Delivered:
			d.State = stateDelivered
		case delivery.Failed:
			d.State = stateFailed
		case delivery.Released:
			d.Counted = 0
		case delivery.Postponed:
		default:
			continue
		}
		done = append(done, d)
	}
	slices.SortStableFunc(done, func(a, b Done) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.ID, b.ID))
	})
	return slices.CompactFunc(done, func(a, b Done) bool {
		return a.ID == b.ID && a.Endpoint == b.Endpoint && a.Lease == b.Lease
	})
}

// Wait implements delivery.Queue.
func (s *Store) Wait(ctx context.Context, d time.Duration) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.wake:
		return nil
	case <-timer.C:
		return nil
	case <-s.closed:
		return formsvc.ErrStoreClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failures implements delivery.Queue.
func (s *Store) Failures(ctx context.Context, now, until time.Time, limit int) ([]delivery.Failure, error) {
	if err := s.ready(ctx); err != nil || limit <= 0 {
		return nil, err
	}
	var rows []noticeRow
	err := s.write(ctx, nil, nil, func(ctx context.Context, c *Tx) error {
		rows = nil
		q := s.build.NewSelect().Conn(c).Model(&rows).ModelTableExpr(s.by("formsvc_notices AS n", "formsvc_notices_open")).
			ColumnExpr("?TableColumns, coalesce(w.url, '') AS url").
			Join("LEFT JOIN formsvc_webhooks AS w ON w.id = n.webhook_id").
			Where("NOT n.noted AND n.due_at <= ?", micros(now)).Order("n.at", "n.delivery_id").Limit(int64(limit))
		if err := s.locked(q, " OF n SKIP LOCKED").Scan(ctx); err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]ID, len(rows))
		for i := range rows {
			ids[i] = rows[i].DeliveryID
		}
		_, err := s.build.NewUpdate().Conn(c).Model((*noticeRow)(nil)).Set("due_at = ?", micros(until)).
			Where("delivery_id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records(rows, (*noticeRow).failure), nil
}

// Noted implements delivery.Queue.
func (s *Store) Noted(ctx context.Context, deliveries []string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ids := sortedIDs(deliveries)
	if len(ids) == 0 {
		return nil
	}
	return s.single(ctx, func(ctx context.Context, c *Tx) error {
		_, err := s.build.NewUpdate().Conn(c).Model((*noticeRow)(nil)).Set("noted = true").
			Where("delivery_id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	})
}

var _ interface {
	formsvc.Store
	delivery.Queue
} = (*Store)(nil)
