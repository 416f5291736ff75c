// Package scale measures the same requests, claims and outcomes on an installation of
// millions of responses and on one of thousands.
package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// What is measured at both sizes, beside bench.CreateWhat.
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

// Reads are the requests that read, in the order in which they are measured.
func Reads() []string {
	return []string{
		randomWhat, scaleFirstWhat, scaleFarWhat, commonWhat, pendingWhat, RareWhat, unknownWhat, emailWhat, strangerWhat,
		updatedWhat, feedStartWhat, feedEndWhat, newestWhat, logWhat, deliveredWhat,
	}
}

// Conns are the connections of the create cells.
func Conns() []int { return []int{1, 64} }

// A runner is the part of a run that compares sizes.
type runner struct{ *bench.Bench }

// Run measures the same on a small and on a large installation, and how much
// the large one takes.
func Run(ctx context.Context, b *bench.Bench) error {
	r := &runner{b}
	for _, store := range b.Stores {
		if err := r.store(ctx, store); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

// large is how many responses the large installation has.
func (r *runner) large(store string) int {
	if store == bench.PostgresStore {
		return r.ScalePostgres
	}
	return r.ScaleSQLite
}

func (r *runner) store(ctx context.Context, store string) (err error) {
	large, err := newInstallation(ctx, r.Bench, store, r.large(store))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.Drop()) }()
	sizes, err := large.sizes(ctx)
	if err != nil {
		return err
	}
	for i := range sizes {
		if err := r.Note(&sizes[i]); err != nil {
			return err
		}
	}
	for round := range r.Rounds {
		if err := r.round(ctx, large, round); err != nil {
			return err
		}
	}
	return nil
}

// round measures everything once, on a fresh small installation.
func (r *runner) round(ctx context.Context, large *installation, round int) (err error) {
	small, err := newInstallation(ctx, r.Bench, large.store, r.ScaleSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.Drop()) }()
	s := &pairBench{Bench: r.Bench, round: round + 1, pair: [2]*installation{small, large}}
	return s.all(ctx)
}

// A pairBench measures one round.
type pairBench struct {
	*bench.Bench
	round int
	pair  [2]*installation // small and large
}

func (s *pairBench) all(ctx context.Context) error {
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

// turns is the order in which the two are measured, another one in each round.
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
		err := requests.Read(ctx, s.Bench, &c, in.DSN, func(addr string) (loadgen.Workload, time.Duration, error) {
			load, err := in.requests(ctx, what, addr)
			if err != nil || what == bench.CreateWhat {
				return load, s.Duration, err
			}
			d, err := long(ctx, addr, &load, s.Duration)
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

// long returns how long to measure requests, at least d: for as many as say something.
func long(ctx context.Context, addr string, load *loadgen.Workload, d time.Duration) (time.Duration, error) {
	const some = 10
	var took time.Duration
	for range 2 { // the second one finds what the first has read
		start := time.Now()
		if _, err := loadgen.Ask(ctx, addr, load.Requests[0], load.Status); err != nil {
			return 0, err
		}
		took = time.Since(start)
	}
	return max(d, some*took), nil
}

// An installation is a database as it is after two years.
type installation struct {
	*database.Database
	history
	store string
}

// newInstallation makes one of n responses.
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
