// Package scale measures the same requests, claims and outcomes on an installation with millions of responses and on
// one with thousands.
package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// The measurements at both sizes, besides bench.CreateWhat.
const (
	randomWhat     = "get any"
	scaleFirstWhat = "first page of all"
	scaleFarWhat   = "a page far behind"
	commonWhat     = "status, common"
	pendingWhat    = "status, pending"
	RareWhat       = "status, rare"
	unknownWhat    = "status, of none"
	emailWhat      = "e-mail"
	strangerWhat   = "e-mail of nobody"
	updatedWhat    = "updated lately"
	feedStartWhat  = "feed, its start"
	feedEndWhat    = "feed, its end"
	newestWhat     = "newest events"
	logWhat        = "deliveries"
	deliveredWhat  = "deliveries, done"
	ClaimWhat      = "claim of 64"
	PayloadsWhat   = "payloads of 64"
	OutcomesWhat   = "outcomes of 64"
)

// Reads are the requests that read, in the order of their measurement.
func Reads() []string {
	return []string{
		randomWhat, scaleFirstWhat, scaleFarWhat, commonWhat, pendingWhat, RareWhat, unknownWhat, emailWhat, strangerWhat,
		updatedWhat, feedStartWhat, feedEndWhat, newestWhat, logWhat, deliveredWhat,
	}
}

// Conns are the numbers of connections of the create cells.
func Conns() []int { return []int{1, 64} }

// A pairBench is the part of a run that compares sizes.
type pairBench struct {
	*bench.Bench
	round int              // from 1
	pair  [2]*installation // small and large
}

// Run measures the same requests on a small and on a large installation, and the size of the large one.
func Run(ctx context.Context, b *bench.Bench) error {
	large := map[string]int{bench.SQLiteStore: b.ScaleSQLite, bench.PostgresStore: b.ScalePostgres}
	for _, store := range b.Stores {
		s := &pairBench{Bench: b}
		if err := s.store(ctx, store, large[store]); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

func (s *pairBench) store(ctx context.Context, store string, n int) (err error) {
	large, err := newInstallation(ctx, s.Bench, store, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.Drop()) }()
	sizes, err := large.sizes(ctx)
	for i := 0; i < len(sizes) && err == nil; i++ {
		err = s.Note(&sizes[i])
	}
	s.pair[1] = large
	for s.round = 1; s.round <= s.Rounds && err == nil; s.round++ {
		err = s.all(ctx)
	}
	return err
}

// all measures everything once, on a fresh small installation.
func (s *pairBench) all(ctx context.Context) (err error) {
	if s.pair[0], err = newInstallation(ctx, s.Bench, s.pair[1].store, s.ScaleSmall); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.pair[0].Drop()) }()
	for _, what := range Reads() {
		if err := s.both(ctx, what, 1); err != nil {
			return err
		}
	}
	if err := s.claims(ctx); err != nil {
		return err
	}
	for _, conns := range Conns() {
		if err := s.both(ctx, bench.CreateWhat, conns); err != nil {
			return err
		}
	}
	return nil
}

// turns returns the order in which the two installations are measured; it alternates between rounds.
func (s *pairBench) turns() []*installation {
	if s.round%2 == 0 {
		return []*installation{s.pair[1], s.pair[0]}
	}
	return s.pair[:]
}

// both measures one kind of request on both installations.
func (s *pairBench) both(ctx context.Context, what string, conns int) error {
	for _, in := range s.turns() {
		c := in.cell(what, conns, s.round)
		start := func(ctx context.Context) (*server.Process, error) {
			return requests.StartOurs(ctx, s.Bench, &c, server.Config{DSN: in.DSN})
		}
		err := requests.Read(ctx, s.Bench, &c, start, func(srv *server.Process) (loadgen.Workload, time.Duration, error) {
			load, err := in.requests(ctx, what, srv.Addr)
			if err != nil || what == bench.CreateWhat {
				return load, s.Duration, err
			}
			d, err := long(ctx, srv.Addr, &load, s.Duration)
			return load, d, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

func (in *installation) cell(what string, conns, round int) result.Cell {
	key := result.Key{Part: bench.ScalePart, What: what, Store: in.store, System: bench.APISystem, Conns: conns, Size: in.n}
	return result.Cell{Key: key, Round: round}
}

// long returns how long to measure requests: at least d, and long enough for a useful number of samples.
func long(ctx context.Context, addr string, load *loadgen.Workload, d time.Duration) (time.Duration, error) {
	const some = 10
	var took time.Duration
	for range 2 { // the second one reads from memory what the first has loaded
		start := time.Now()
		if _, err := loadgen.Ask(ctx, addr, load.Requests[0], load.Status); err != nil {
			return 0, err
		}
		took = time.Since(start)
	}
	return max(d, some*took), nil
}

// An installation is a database after two years of use.
type installation struct {
	*database.Database
	history
	store string
}

// newInstallation creates an installation of n responses.
func newInstallation(ctx context.Context, b *bench.Bench, store string, n int) (*installation, error) {
	start := time.Now()
	in := &installation{store: store, history: history{n: n}}
	in.firstDue = in.outage(b.ScaleDue)
	var err error
	if in.Database, err = database.New(ctx, store, b.Dir); err != nil {
		return nil, err
	}
	if err = in.build(ctx); err == nil {
		err = in.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%d responses: %w", n, err), in.Drop())
	}
	_, _ = fmt.Fprintf(b.Log, "stored %d responses in %s in %.1f s\n", n, store, time.Since(start).Seconds())
	return in, nil
}

// claimTurns is how often a round claims deliveries of each installation. The deliveries of a small one last for three
// rounds.
const claimTurns = 30

// claims measures claiming, reading and finishing deliveries. The installations take turns, so that both see the same
// machine.
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

// A timedQueue is the queue of an installation with the times of its calls.
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

// turn claims deliveries of every failing webhook, reads their payloads and records them as delivered.
func (q *timedQueue) turn(ctx context.Context, counts bool) error {
	claims, claimed, err := database.Claim(ctx, q.queue, q.endpoints)
	if err != nil {
		return err
	}
	events, outcomes := finished(claims, time.Now())
	start := time.Now()
	payloads, err := q.queue.Payloads(ctx, events)
	if err != nil {
		return err
	}
	read := time.Now()
	accepted, err := q.queue.Finish(ctx, outcomes)
	if err != nil {
		return err
	}
	if len(payloads) != database.Claimed || slices.Contains(accepted, false) {
		return fmt.Errorf("%d claims had %d payloads; outcomes accepted: %v", len(claims), len(payloads), accepted)
	}
	if counts {
		for what, took := range map[string]time.Duration{ClaimWhat: claimed, PayloadsWhat: read.Sub(start), OutcomesWhat: time.Since(read)} {
			q.took[what] = append(q.took[what], took)
		}
	}
	return nil
}

// finished returns the events of claims, and outcomes that report them as delivered.
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
