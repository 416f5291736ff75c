package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
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

// firstTimed is less than any token with a time in it. Tokens of earlier releases count
// from 1.
const firstTimed = 1 << 53

// claimedAt returns when a delivery was claimed, by its token; the zero time if it isn't
// claimed.
func claimedAt(lease int64) time.Time {
	if lease&1 == 0 || lease < firstTimed {
		return time.Time{}
	}
	return fromMicros(lease / tokenSteps)
}

// Ready implements delivery.Queue.
func (s *Store) Ready(ctx context.Context, now time.Time) ([]delivery.Endpoint, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	ready, err := s.endpoints(ctx, now)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	return ready, nil
}

func (s *Store) endpoints(ctx context.Context, now time.Time) (ready []delivery.Endpoint, err error) {
	rows, err := s.queue.QueryContext(ctx, s.statements.Ready, micros(now))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var (
			e     delivery.Endpoint
			v     secrets
			until int64
		)
		if err := rows.Scan(&e.ID, &e.Account, &e.URL, &v.secret, &v.previous, &until, &v.headers); err != nil {
			return nil, err
		}
		v.webhook = e.ID
		if until <= micros(now) {
			v.previous = ""
		}
		s.open(&e, &v)
		ready = append(ready, e)
	}
	return ready, rows.Err()
}

// open fills in the sealed values. If one can't be opened, the error becomes the reason
// that nothing can be sent.
func (s *Store) open(e *delivery.Endpoint, v *secrets) {
	secret, secretErr := s.openSecret(v)
	previous, previousErr := s.openPrevious(v)
	headers, headersErr := s.openHeaders(v)
	if e.Err = errors.Join(secretErr, previousErr, headersErr); e.Err == nil {
		e.Secret, e.Previous, e.Headers = secret, previous, httpHeaders(headers)
	}
}

// A Leased is a row that a claim returns.
type Leased struct {
	ID, EventID, Endpoint string
	Event                 int64 // the event's type, see TypeOf
	Kind, Attempts, Size  int
	Lease                 int64
}

// ScanLeased appends the rows of a claim to leased and closes them.
func ScanLeased(leased []Leased, rows *sql.Rows) (_ []Leased, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var l Leased
		if err := rows.Scan(&l.ID, &l.EventID, &l.Endpoint, &l.Event, &l.Kind, &l.Attempts, &l.Size, &l.Lease); err != nil {
			return nil, err
		}
		leased = append(leased, l)
	}
	return leased, rows.Err()
}

// ScanPayloads returns rows of identifiers, bodies and traces, about n of them, and
// closes them.
func ScanPayloads(rows *sql.Rows, n int) (_ map[string]delivery.Payload, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	payloads := make(map[string]delivery.Payload, n)
	for rows.Next() {
		var (
			id      string
			payload delivery.Payload
		)
		if err := rows.Scan(&id, &payload.Body, &payload.TraceParent); err != nil {
			return nil, err
		}
		payloads[id] = payload
	}
	return payloads, rows.Err()
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
	var leased []Leased
	err := s.single(ctx, func(ctx context.Context, c bun.IConn) (err error) {
		leased, err = s.backend.ClaimDue(ctx, c, shares, micros(req.Now), micros(req.Now.Add(req.Lease)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimsOf(leased, shares), nil
}

// claimsOf returns the claims in the order of the shares, those of an endpoint by kind and
// then by age.
func claimsOf(leased []Leased, shares []delivery.Share) []delivery.Claim {
	late := make(map[string]bool, len(shares))
	order := make(map[string]int, len(shares))
	for i, share := range shares {
		late[share.Endpoint], order[share.Endpoint] = share.LateFirst, i
	}
	rank := func(l *Leased) int {
		if late[l.Endpoint] && l.Kind == int(delivery.First) {
			return int(delivery.Replay) + 1
		}
		return l.Kind
	}
	slices.SortFunc(leased, func(a, b Leased) int {
		if d := order[a.Endpoint] - order[b.Endpoint]; d != 0 {
			return d
		}
		if d := rank(&a) - rank(&b); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID) // identifiers are in order of age
	})
	claims := make([]delivery.Claim, len(leased))
	for i, l := range leased {
		t, _ := eventOf(l.Event)
		claims[i] = delivery.Claim{
			ID: l.ID, Lease: l.Lease, EventID: l.EventID, Event: string(t), Endpoint: l.Endpoint,
			Kind: delivery.Kind(l.Kind), Attempts: l.Attempts, Size: l.Size,
		}
	}
	return claims
}

// Payloads implements delivery.Queue.
func (s *Store) Payloads(ctx context.Context, events []string) (map[string]delivery.Payload, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	payloads, err := s.backend.Payloads(ctx, s.queue, canonical(events))
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	return payloads, nil
}

// canonical returns the texts that are canonical identifiers; nothing else can be stored.
func canonical(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return checkIDs(formsvc.ID(id)) != nil })
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
	err := s.single(ctx, func(ctx context.Context, c bun.IConn) error {
		accepted = make([]bool, len(outcomes))
		oks, err := s.backend.FinishDeliveries(ctx, c, done)
		for i, ok := range oks {
			accepted[done[i].index] = ok
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return accepted, nil
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
		if d := strings.Compare(a.Endpoint, b.Endpoint); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
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
	var failures []delivery.Failure
	err := s.single(ctx, func(ctx context.Context, c bun.IConn) (err error) {
		failures = nil
		rows, err := c.QueryContext(ctx, s.statements.LeaseNotices, micros(until), micros(now), limit)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var (
				f         delivery.Failure
				event, at int64
				address   string
			)
			if err := rows.Scan(&f.Delivery, &f.Account, &f.Endpoint, &f.EventID, &event, &f.Attempts, &f.Status, &f.Error,
				&at, &address); err != nil {
				return err
			}
			t, _ := eventOf(event)
			f.Event, f.At, f.Host = string(t), fromMicros(at), hostOf(address)
			failures = append(failures, f)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(failures, func(a, b delivery.Failure) int {
		if d := a.At.Compare(b.At); d != 0 {
			return d
		}
		return strings.Compare(a.Delivery, b.Delivery)
	})
	return failures, nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Noted implements delivery.Queue.
func (s *Store) Noted(ctx context.Context, deliveries []string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ids := canonical(deliveries)
	if len(ids) == 0 {
		return nil
	}
	return s.single(ctx, func(ctx context.Context, c bun.IConn) error {
		return s.backend.NoteNotices(ctx, c, ids)
	})
}

var _ interface {
	formsvc.Store
	delivery.Queue
} = (*Store)(nil)
