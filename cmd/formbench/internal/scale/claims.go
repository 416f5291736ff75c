package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// claimTurns is how often a round claims deliveries of each installation: so that
// those of a small one last for three rounds.
const claimTurns = 30

// claims measures how deliveries are claimed, read and finished. The installations
// take turns, so that both meet the same machine.
func (s *pairBench) claims(ctx context.Context) (err error) {
	var queues [2]*timedQueue
	for i, in := range s.turns() {
		st, err := database.OpenStore(ctx, in.DSN, 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, st.Close()) }()
		queues[i] = newTimedQueue(in, st)
	}
	for turn := range claimTurns + 1 {
		for _, q := range queues {
			if err := q.turn(ctx, turn > 0); err != nil {
				return fmt.Errorf("claim from %d responses: %w", q.in.n, err)
			}
		}
	}
	for _, what := range []string{ClaimWhat, PayloadsWhat, OutcomesWhat} {
		for _, q := range queues {
			c := q.in.cell(what, 1, s.round)
			timed(&c, q.took[what])
			if err := s.Note(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// timed turns durations into figures.
func timed(c *result.Cell, took []time.Duration) {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	slices.Sort(took)
	c.Add("requests/s", float64(len(took))/sum.Seconds())
	c.Add("p50-ms", loadgen.Quantile(took, 50, 100))
	c.Add("p99-ms", loadgen.Quantile(took, 99, 100))
	c.Add("max-ms", loadgen.Quantile(took, 1, 1))
}

// A timedQueue is the queue of an installation and how long it took.
type timedQueue struct {
	in        *installation
	queue     delivery.Queue
	endpoints []string
	took      map[string][]time.Duration
}

func newTimedQueue(in *installation, queue delivery.Queue) *timedQueue {
	q := &timedQueue{in: in, queue: queue, took: make(map[string][]time.Duration)}
	for _, a := range in.accounts[quietAccounts:] {
		q.endpoints = append(q.endpoints, string(a.failing))
	}
	return q
}

// turn claims deliveries of every failing webhook, reads what is to be sent and says
// that it was.
func (q *timedQueue) turn(ctx context.Context, counts bool) error {
	var (
		payloads map[string]delivery.Payload
		accepted []bool
	)
	lap := func(what string, do func() error) error {
		start := time.Now()
		err := do()
		if counts {
			q.took[what] = append(q.took[what], time.Since(start))
		}
		return err
	}
	claims, took, err := database.Claim(ctx, q.queue, q.endpoints)
	if err != nil {
		return err
	}
	if counts {
		q.took[ClaimWhat] = append(q.took[ClaimWhat], took)
	}
	events, outcomes := finished(claims, time.Now())
	if err := lap(PayloadsWhat, func() (err error) {
		payloads, err = q.queue.Payloads(ctx, events)
		return err
	}); err != nil {
		return err
	}
	if err := lap(OutcomesWhat, func() (err error) {
		accepted, err = q.queue.Finish(ctx, outcomes)
		return err
	}); err != nil {
		return err
	}
	if len(payloads) != database.Claimed || slices.Contains(accepted, false) {
		return fmt.Errorf("%d claims had %d payloads; outcomes accepted: %v", len(claims), len(payloads), accepted)
	}
	return nil
}

// finished returns the events of claims, and outcomes that say that all went well.
func finished(claims []delivery.Claim, now time.Time) (events []string, outcomes []delivery.Outcome) {
	for i := range claims {
		c := &claims[i]
		events = append(events, c.EventID)
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Delivered,
			Attempt: delivery.Attempt{StartedAt: now, Duration: time.Millisecond, Status: 200},
		})
	}
	return events, outcomes
}
