// Package deliver measures what delivering webhooks costs: accepting and delivering at
// once, a backlog, latency, endpoints that hang or do harm, claims beside a backlog, and
// a process at rest. Next to it are a loop that signs and posts from memory, and River.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// A runner is the parts of a run that deliver.
type runner struct {
	*bench.Bench
	body      []byte // a payload of the service
	receiver  *process.Process
	reference *process.Process
	hostile   *process.Process // nil until it is needed
	last      float64          // what the reference did the last time
	beside    *result.Cell     // measured together with the current one
}

// Run measures the parts that deliver.
func Run(ctx context.Context, b *bench.Bench) (err error) {
	d := &runner{Bench: b}
	defer func() { err = errors.Join(err, d.reference.Stop(), d.receiver.Stop(), d.hostile.Stop()) }()
	if d.body, err = database.SamplePayload(ctx); err != nil {
		return err
	}
	if d.receiver, err = d.startWorker(ctx, worker.Config{Role: process.ReceiverRole}); err != nil {
		return err
	}
	cfg := worker.Config{Role: process.ReferenceRole, URL: d.receiver.Ready.Addr + "/0", Body: d.body, Conns: referenceConns}
	if d.reference, err = d.startWorker(ctx, cfg); err != nil {
		return err
	}
	for range 2 { // the first one warms up
		if err := d.readReference(); err != nil {
			return err
		}
	}
	for _, c := range plan(d.Bench) {
		if err := d.cell(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// startWorker starts a worker of this program.
func (d *runner) startWorker(ctx context.Context, cfg worker.Config) (*process.Process, error) {
	return process.Start(ctx, cfg, d.Log, d.Self, process.Command)
}

// plan returns the cells in the order they are measured in: what is
// compared is measured one after the other, beginning elsewhere in each round.
func plan(b *bench.Bench) (list []result.Cell) {
	for round := range b.Rounds {
		for _, what := range bench.DeliverParts() {
			if !slices.Contains(b.Only, what) || round >= mostRounds(what) {
				continue
			}
			for _, store := range b.Stores {
				cells := requests.Plan(what, store, whats(what, store), []int{0}, []int{0}, systemsOf(b, what), 0)
				for i := range cells {
					cells[i].Round = round + 1
				}
				list = append(list, bench.Rotated(cells, round)...)
			}
		}
	}
	return list
}

// mostRounds bounds the rounds of the parts that take long or hardly vary.
func mostRounds(what string) int {
	switch what {
	case bench.LatencyPart:
		return 2
	case bench.BacklogPart, bench.IdlePart:
		return 1
	}
	return 1 << 20
}

func systemsOf(b *bench.Bench, what string) []string {
	if b.River != "" && BesideRiver(what) {
		return []string{bench.APISystem, bench.RiverSystem}
	}
	return []string{bench.APISystem}
}

// BesideRiver reports whether the peer is measured too.
func BesideRiver(what string) bool { return what == bench.SteadyPart || what == bench.DrainPart }

// whats are what a part measures on a store.
func whats(part, store string) []string {
	switch part {
	case bench.LatencyPart:
		if store == bench.PostgresStore {
			return []string{bench.AcrossWhat, bench.WithinWhat}
		}
		return []string{bench.WithinWhat}
	case bench.IsolationPart:
		var list []string
		for _, pair := range scenePairs() {
			list = append(list, pair[1].name+bench.ClosedLoop, pair[1].name+bench.OpenLoop)
		}
		return list
	case bench.BacklogPart:
		return []string{bench.NeverWhat, bench.EmptyWhat}
	}
	return []string{""}
}

// cell measures between two readings of the reference.
func (d *runner) cell(ctx context.Context, c result.Cell) error {
	before := d.last
	measure := map[string]func(context.Context, *result.Cell) error{
		bench.SteadyPart: d.steady, bench.DrainPart: d.drain, bench.LatencyPart: d.latency, bench.IsolationPart: d.isolation,
		bench.BacklogPart: d.backlog, bench.IdlePart: d.idle,
	}[c.Part]
	if err := measure(ctx, &c); err != nil {
		return err
	}
	if err := d.readReference(); err != nil {
		return err
	}
	cells := []*result.Cell{&c}
	if d.beside != nil {
		cells, d.beside = []*result.Cell{d.beside, &c}, nil
	}
	for _, c := range cells {
		reference := (before + d.last) / 2 // the mean of before and after
		if rate, ok := c.Get("deliveries/s"); ok {
			c.Add("reference/s", reference)
			c.Add("of-reference", rate/reference)
		}
		if err := d.Note(c); err != nil {
			return err
		}
	}
	return nil
}

// referenceConns is how many connections the reference posts over.
const referenceConns = 64

// readReference measures the reference.
func (d *runner) readReference() error {
	n := d.Events * 3 / 2
	if _, err := d.receiver.Do(worker.Command{Do: worker.Reset}); err != nil {
		return err
	}
	posted, err := d.reference.Do(worker.Command{Do: worker.Post, N: n})
	if err != nil {
		return err
	}
	arrived, err := d.receiver.Do(worker.Command{Do: worker.Reset})
	if err == nil && (arrived.N != n || arrived.Bad != 0) {
		err = fmt.Errorf("of %d reference posts %d arrived, %d of them wrong", n, arrived.N, arrived.Bad)
	}
	d.last = float64(n) / posted.Seconds
	return err
}

// patience is how long to wait for n deliveries.
func patience(n int) time.Duration { return time.Minute + time.Duration(n)*10*time.Millisecond }
