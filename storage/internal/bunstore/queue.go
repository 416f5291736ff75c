package bunstore

import (
	"context"
	"slices"
	"sort"
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
	if len(ready) == 0 || req.Limit <= 0 {
		return nil, nil
	}
	var leased []Leased
	err = s.unit(ctx, func(ctx context.Context, c bun.IConn) (err error) {
		leased, err = s.claim(ctx, c, ready, &req)
		return err
	})
	if err != nil {
		return nil, err
	}
	endpoints := make(map[string]delivery.Endpoint, len(ready))
	for _, e := range ready {
		endpoints[e.ID] = e
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

// claim fills the room in rounds: what one endpoint can't use goes to those
// that had more than their share.
func (s *Store) claim(
	ctx context.Context, c bun.IConn, ready []delivery.Endpoint, req *delivery.ClaimRequest,
) ([]Leased, error) {
	var all []Leased
	now, until := micros(req.Now), micros(req.Now.Add(req.Lease))
	taken := make(map[string]int, len(ready))
	for _, e := range ready {
		taken[e.ID] = 0
	}
	for len(all) < req.Limit {
		shares := divide(ready, req, taken, req.Limit-len(all))
		if len(shares) == 0 {
			break
		}
		leased, err := s.backend.ClaimDue(ctx, c, shares, now, until)
		if err != nil {
			return nil, err
		}
		got := make(map[string]int, len(shares))
		for _, l := range leased {
			got[l.Endpoint]++
		}
		for _, share := range shares {
			id := share.Endpoint.ID
			taken[id] += got[id]
			if got[id] < share.N {
				delete(taken, id)
			}
		}
		all = append(all, leased...)
	}
	return all, nil
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

// divide shares the room among the endpoints as evenly as their caps allow,
// starting after the one served last. taken is what each got in earlier rounds;
// an endpoint that is not in it anymore has nothing left.
func divide(ready []delivery.Endpoint, req *delivery.ClaimRequest, taken map[string]int, room int) []Share {
	start := 0
	for start < len(ready) && ready[start].ID <= req.After {
		start++
	}
	shares := make([]Share, 0, len(ready))
	for i := range ready {
		e := ready[(start+i)%len(ready)]
		if _, ok := taken[e.ID]; ok {
			shares = append(shares, Share{Endpoint: e})
		}
	}
	most := func(s *Share) int { return req.PerEndpoint - req.Busy[s.Endpoint.ID] - taken[s.Endpoint.ID] }
	// level is how high every endpoint can be filled: the last one that fits.
	level := sort.Search(req.PerEndpoint, func(level int) bool {
		need := 0
		for i := range shares {
			need += max(0, min(most(&shares[i]), level+1-taken[shares[i].Endpoint.ID]))
		}
		return need > room
	})
	for i := range shares {
		s := &shares[i]
		s.N = max(0, min(most(s), level-taken[s.Endpoint.ID]))
		room -= s.N
	}
	for i := range shares {
		if s := &shares[i]; room > 0 && s.N < most(s) && s.N+taken[s.Endpoint.ID] == level {
			s.N++
			room--
		}
	}
	return slices.DeleteFunc(shares, func(s Share) bool { return s.N == 0 })
}

// Payloads implements delivery.Queue.
func (s *Store) Payloads(ctx context.Context, events []string) (map[string][]byte, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	// What is no identifier is that of no event.
	known := slices.DeleteFunc(slices.Clone(events), func(id string) bool {
		return checkIDs(formsvc.ID(id)) != nil
	})
	payloads, err := s.backend.Payloads(ctx, s.read, known)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	return payloads, nil
}

// Finish implements delivery.Queue.
func (s *Store) Finish(ctx context.Context, outcomes []delivery.Outcome) ([]bool, error) {
	accepted := make([]bool, len(outcomes))
	var (
		known []delivery.Outcome
		index []int
	)
	for i := range outcomes {
		if checkIDs(formsvc.ID(outcomes[i].ID)) == nil {
			known, index = append(known, outcomes[i]), append(index, i)
		}
	}
	err := s.unit(ctx, func(ctx context.Context, c bun.IConn) error {
		oks, err := s.backend.FinishDeliveries(ctx, c, known)
		for i, ok := range oks {
			accepted[index[i]] = ok
		}
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
