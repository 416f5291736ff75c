package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A claimed delivery is one that is due again when its lease ends: DueAt is all
// that says so. Nothing has to look for lost claims, and there is one index.

// readyEndpoints finds the endpoints with due deliveries by jumping from one
// endpoint to the next in the index of pending deliveries, so that its cost is
// the number of endpoints with work, whatever the backlog of each.
const readyEndpoints = `
WITH RECURSIVE pending(webhook_id) AS (
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d WHERE d.state = 0 ORDER BY d.webhook_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.webhook_id FROM formsvc_deliveries AS d
          WHERE d.state = 0 AND d.webhook_id > p.webhook_id ORDER BY d.webhook_id LIMIT 1)
  FROM pending AS p WHERE p.webhook_id IS NOT NULL
)
SELECT p.webhook_id, coalesce(w.url, ''), coalesce(w.secret, ''), coalesce(CAST(w.account_id AS TEXT), ''),
       coalesce(w.disabled, false)
FROM pending AS p LEFT JOIN formsvc_webhooks AS w ON w.id = p.webhook_id
WHERE (SELECT d.due_at FROM formsvc_deliveries AS d
       WHERE d.state = 0 AND d.webhook_id = p.webhook_id ORDER BY d.due_at LIMIT 1) <= ?`

// Claim implements delivery.Queue.
func (s *Store) Claim(ctx context.Context, req delivery.ClaimRequest) ([]delivery.Claim, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	now := micros(req.Now)
	ready, gone, err := s.readyEndpoints(ctx, now)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	if len(gone) > 0 {
		if err := s.purge(ctx, gone); err != nil {
			return nil, err
		}
	}
	shares := divide(ready, &req)
	if len(shares) == 0 {
		return nil, nil
	}
	var leased []Leased
	err = s.unit(ctx, func(ctx context.Context, c bun.IConn) (err error) {
		leased, err = s.backend.ClaimDue(ctx, c, shares, now, micros(req.Now.Add(req.Lease)))
		return err
	})
	if err != nil {
		return nil, err
	}
	endpoints := make(map[string]delivery.Endpoint, len(shares))
	for _, share := range shares {
		endpoints[share.Endpoint.ID] = share.Endpoint
	}
	claims := make([]delivery.Claim, len(leased))
	for i, l := range leased {
		claims[i] = delivery.Claim{
			ID: l.ID, Lease: l.Lease, EventID: l.EventID, Event: string(eventOf(l.Event)), Attempts: l.Attempts,
			Endpoint: endpoints[l.Endpoint],
		}
	}
	return claims, nil
}

// readyEndpoints returns the endpoints with due deliveries in the order of
// their identifiers, and the identifiers of deleted ones that have some left.
func (s *Store) readyEndpoints(ctx context.Context, now int64) (ready []delivery.Endpoint, gone []string, err error) {
	rows, err := s.read.QueryContext(ctx, s.rebind(readyEndpoints), now)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var (
			e        delivery.Endpoint
			disabled bool
		)
		if err := rows.Scan(&e.ID, &e.URL, &e.Secret, &e.Account, &disabled); err != nil {
			return nil, nil, err
		}
		switch {
		case e.Account == "":
			gone = append(gone, e.ID)
		case !disabled:
			ready = append(ready, e)
		}
	}
	return ready, gone, rows.Err()
}

// purgeBatch is how many deliveries of a deleted webhook one claim removes.
const purgeBatch = 1_000

func (s *Store) purge(ctx context.Context, webhooks []string) error {
	return s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		some := s.build.NewSelect().TableExpr("formsvc_deliveries AS d").Column("d.id").
			Where("d.state = 0 AND d.webhook_id IN (?)", bun.List(webhooks)).Limit(purgeBatch)
		_, err := s.build.NewDelete().Conn(c).TableExpr("formsvc_deliveries").Where("id IN (?)", some).Exec(ctx)
		return err
	})
}

// divide shares the room among the endpoints: each gets an even part first, and
// what is left goes round again, starting after the one served last.
func divide(ready []delivery.Endpoint, req *delivery.ClaimRequest) []Share {
	start := 0
	for start < len(ready) && ready[start].ID <= req.After {
		start++
	}
	shares := make([]Share, 0, len(ready))
	for i := range ready {
		e := ready[(start+i)%len(ready)]
		if req.PerEndpoint-req.Busy[e.ID] > 0 {
			shares = append(shares, Share{Endpoint: e})
		}
	}
	room := req.Limit
	for room > 0 {
		part, given := max(1, room/max(1, len(shares))), 0
		for i := range shares {
			s := &shares[i]
			n := min(part, room, req.PerEndpoint-req.Busy[s.Endpoint.ID]-s.N)
			s.N += n
			room -= n
			given += n
		}
		if given == 0 {
			break
		}
	}
	n := 0
	for _, s := range shares {
		if s.N > 0 {
			shares[n] = s
			n++
		}
	}
	return shares[:n]
}

// Payloads implements delivery.Queue.
func (s *Store) Payloads(ctx context.Context, events []string) (map[string][]byte, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	payloads, err := s.backend.Payloads(ctx, s.read, events)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	return payloads, nil
}

// Finish implements delivery.Queue.
func (s *Store) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	var accepted []bool
	err := s.unit(ctx, func(ctx context.Context, c bun.IConn) (err error) {
		accepted, err = s.backend.FinishDeliveries(ctx, c, outcomes, micros(time.Now()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return accepted, nil
}

// Row is how an outcome changes a delivery's row.
type Row struct {
	State   int
	Counted int   // attempts to add
	DueAt   int64 // when pending
	At      int64 // when the attempt ended
}

// RowOf returns what an outcome writes.
func RowOf(o *delivery.Outcome) Row {
	r := Row{Counted: 1, DueAt: micros(o.Due), At: micros(o.Attempt.StartedAt.Add(o.Attempt.Duration))}
	switch o.Result {
	case delivery.Delivered:
		r.State = stateDelivered
	case delivery.Failed:
		r.State = stateFailed
	case delivery.Released:
		r.Counted = 0
	case delivery.Retry:
	}
	return r
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
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ interface {
	formsvc.Store
	delivery.Queue
} = (*Store)(nil)
