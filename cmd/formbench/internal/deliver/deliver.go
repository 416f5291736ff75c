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
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// RiverSystem is the peer: a job queue on the same kind of database, with a worker
// that signs and posts.
const RiverSystem = "river"

// A Cell is one row of a table about delivering, measured once.
type Cell struct {
	What   string `json:"what"` // the part of the run
	Store  string `json:"store"`
	System string `json:"system"`
	How    string `json:"how"`
	Round  int    `json:"round"`
	Figures
}

// Figures are what was measured. A part measures some of them.
type Figures struct {
	Events          int     `json:"events"`
	Reference       float64 `json:"referencePerSecond"` // mean of before and after
	PerSecond       float64 `json:"deliveriesPerSecond"`
	OfReference     float64 `json:"ofReference"`
	AcceptPerSecond float64 `json:"acceptedPerSecond"`
	P50             float64 `json:"p50Milliseconds"` // from commit to arrival
	P99             float64 `json:"p99Milliseconds"`
	CallP50         float64 `json:"callP50Milliseconds"` // from just before the call to arrival
	CallP99         float64 `json:"callP99Milliseconds"`
	SenderCPU       float64 `json:"senderSecondsPer10k"`
	ReceiverCPU     float64 `json:"receiverSecondsPer10k"`
	OtherCPU        float64 `json:"otherSecondsPer10k"` // everything else on the machine
	CPU             float64 `json:"secondsPer10k"`      // all of the system: other counts on Postgres only
	OtherCores      float64 `json:"otherCores"`
	PeakMB          float64 `json:"peakMegabytes"` // resident memory of the sender
	Cores           float64 `json:"cores"`         // that the sender used at rest
	Queries         float64 `json:"queriesPerSecond"`
	Claim           float64 `json:"claimMicroseconds"` // median, beside the backlog
	ClaimAlone      float64 `json:"claimAloneMicroseconds"`
	Blocks          float64 `json:"claimBlocks"` // of the table and its indexes, Postgres only
	BlocksAlone     float64 `json:"claimAloneBlocks"`
}

// String names the cell in progress lines.
func (c *Cell) String() string {
	name := fmt.Sprintf("round %d, %s, %s, %s", c.Round, c.What, c.Store, c.System)
	if c.How != "" {
		name += ", " + c.How
	}
	return name
}

// A runner is the parts of a run that deliver.
type runner struct {
	*bench.Bench
	body      []byte // a payload of the service
	receiver  *process.Process
	reference *process.Process
	hostile   *process.Process // nil until it is needed
	last      float64          // what the reference did the last time
	beside    *Cell            // measured together with the current one
	cells     []Cell
}

// Run measures the parts that deliver. What was measured until one fails is
// returned, too.
func Run(ctx context.Context, b *bench.Bench) ([]Cell, error) {
	d := &runner{Bench: b}
	err := d.all(ctx)
	return d.cells, err
}

func (d *runner) all(ctx context.Context) (err error) {
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
func plan(b *bench.Bench) (list []Cell) {
	for round := range b.Rounds {
		for _, what := range bench.DeliverParts() {
			if !slices.Contains(b.Only, what) || round >= mostRounds(what) {
				continue
			}
			for _, store := range b.Stores {
				var cells []Cell
				for _, system := range systemsOf(b, what, store) {
					for _, how := range hows(what, store) {
						cells = append(cells, Cell{What: what, Store: store, System: system, How: how, Round: round + 1})
					}
				}
				at := round % len(cells)
				list = slices.Concat(list, cells[at:], cells[:at])
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

func systemsOf(b *bench.Bench, what, store string) []string {
	if b.River != "" && BesideRiver(what) {
		return []string{bench.APISystem, RiverSystem}
	}
	return []string{bench.APISystem}
}

// BesideRiver reports whether the peer is measured too.
func BesideRiver(what string) bool { return what == bench.SteadyPart || what == bench.DrainPart }

// hows are the ways in which a part is measured on a store.
func hows(what, store string) []string {
	switch what {
	case bench.LatencyPart:
		if store == bench.PostgresStore {
			return []string{acrossHow, WithinHow}
		}
		return []string{WithinHow}
	case bench.IsolationPart:
		var list []string
		for _, pair := range scenePairs() {
			list = append(list, pair[1].name+ClosedLoop, pair[1].name+OpenLoop)
		}
		return list
	case bench.BacklogPart:
		return []string{neverHow, EmptyHow}
	}
	return []string{""}
}

// cell measures between two readings of the reference.
func (d *runner) cell(ctx context.Context, c Cell) error {
	before := d.last
	measure := map[string]func(context.Context, *Cell) error{
		bench.SteadyPart: d.steady, bench.DrainPart: d.drain, bench.LatencyPart: d.latency, bench.IsolationPart: d.isolation,
		bench.BacklogPart: d.backlog, bench.IdlePart: d.idle,
	}[c.What]
	if err := measure(ctx, &c); err != nil {
		return err
	}
	if err := d.readReference(); err != nil {
		return err
	}
	if d.beside != nil {
		d.note(*d.beside, (before+d.last)/2)
		d.beside = nil
	}
	d.note(c, (before+d.last)/2)
	return nil
}

func (d *runner) note(c Cell, reference float64) {
	c.Reference = reference
	if reference > 0 {
		c.OfReference = c.PerSecond / reference
	}
	d.cells = append(d.cells, c)
	_, _ = fmt.Fprintf(d.Log, "%s: %s\n", &c, c.summary())
}

// summary is what the progress line says.
func (c *Cell) summary() string {
	switch c.What {
	case bench.BacklogPart:
		return fmt.Sprintf("a claim takes %.0f µs, %.0f without the backlog", c.Claim, c.ClaimAlone)
	case bench.IdlePart:
		return fmt.Sprintf("%.4f cores, %.2f queries/s", c.Cores, c.Queries)
	}
	text := fmt.Sprintf("%.0f/s, %.2f of the reference (%.0f/s)", c.PerSecond, c.OfReference, c.Reference)
	if c.P99 > 0 {
		text += fmt.Sprintf(", p50 %.2f ms, p99 %.2f ms", c.P50, c.P99)
	}
	if c.CPU > 0 && c.What != bench.LatencyPart {
		text += fmt.Sprintf(", %.2f CPU s per 10k", c.CPU)
	}
	return text
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
