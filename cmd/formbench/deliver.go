package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// riverSystem is the peer: a job queue on the same kind of database, with a worker
// that signs and posts.
const riverSystem = "river"

// A deliverCell is one row of a table about delivering, measured once.
type deliverCell struct {
	What   string `json:"what"` // the part of the run
	Store  string `json:"store"`
	System string `json:"system"`
	How    string `json:"how"`
	Round  int    `json:"round"`
	deliverFigures
}

// deliverFigures are what was measured. A part measures some of them.
type deliverFigures struct {
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
func (c *deliverCell) String() string {
	name := fmt.Sprintf("round %d, %s, %s, %s", c.Round, c.What, c.Store, c.System)
	if c.How != "" {
		name += ", " + c.How
	}
	return name
}

// A deliverBench is the parts of a run that deliver.
type deliverBench struct {
	*bench.Bench
	body      []byte // a payload of the service
	receiver  *process
	reference *process
	hostile   *process     // nil until it is needed
	last      float64      // what the reference did the last time
	beside    *deliverCell // measured together with the current one
	cells     []deliverCell
}

// deliverCells measures the parts that deliver. What was measured until one fails is
// returned, too.
func deliverCells(ctx context.Context, b *bench.Bench) ([]deliverCell, error) {
	d := &deliverBench{Bench: b}
	err := d.all(ctx)
	return d.cells, err
}

func (d *deliverBench) all(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.reference.stop(), d.receiver.stop(), d.hostile.stop()) }()
	if d.body, err = database.SamplePayload(ctx); err != nil {
		return err
	}
	if d.receiver, err = d.startWorker(ctx, worker.Config{Role: receiverRole}); err != nil {
		return err
	}
	cfg := worker.Config{Role: referenceRole, URL: d.receiver.ready.Addr + "/0", Body: d.body, Conns: referenceConns}
	if d.reference, err = d.startWorker(ctx, cfg); err != nil {
		return err
	}
	for range 2 { // the first one warms up
		if err := d.readReference(); err != nil {
			return err
		}
	}
	for _, c := range deliverPlan(d.Bench) {
		if err := d.cell(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", &c, err)
		}
	}
	return nil
}

// startWorker starts a worker of this program.
func (d *deliverBench) startWorker(ctx context.Context, cfg worker.Config) (*process, error) {
	return startProcess(ctx, cfg, d.Log, d.Self, workCommand)
}

// deliverPlan returns the cells in the order they are measured in: what is
// compared is measured one after the other, beginning elsewhere in each round.
func deliverPlan(b *bench.Bench) (list []deliverCell) {
	for round := range b.Rounds {
		for _, what := range bench.DeliverParts() {
			if !slices.Contains(b.Only, what) || round >= mostRounds(what) {
				continue
			}
			for _, store := range b.Stores {
				var cells []deliverCell
				for _, system := range deliverSystems(b, what, store) {
					for _, how := range hows(what, store) {
						cells = append(cells, deliverCell{What: what, Store: store, System: system, How: how, Round: round + 1})
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

func deliverSystems(b *bench.Bench, what, store string) []string {
	if b.River != "" && besideRiver(what) {
		return []string{bench.APISystem, riverSystem}
	}
	return []string{bench.APISystem}
}

// besideRiver reports whether the peer is measured too.
func besideRiver(what string) bool { return what == bench.SteadyPart || what == bench.DrainPart }

// hows are the ways in which a part is measured on a store.
func hows(what, store string) []string {
	switch what {
	case bench.LatencyPart:
		if store == bench.PostgresStore {
			return []string{acrossHow, withinHow}
		}
		return []string{withinHow}
	case bench.IsolationPart:
		var list []string
		for _, pair := range scenePairs() {
			list = append(list, pair[1].name+closedLoop, pair[1].name+openLoop)
		}
		return list
	case bench.BacklogPart:
		return []string{neverHow, emptyHow}
	}
	return []string{""}
}

// cell measures between two readings of the reference.
func (d *deliverBench) cell(ctx context.Context, c deliverCell) error {
	before := d.last
	measure := map[string]func(context.Context, *deliverCell) error{
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
		d.noteDelivery(*d.beside, (before+d.last)/2)
		d.beside = nil
	}
	d.noteDelivery(c, (before+d.last)/2)
	return nil
}

func (d *deliverBench) noteDelivery(c deliverCell, reference float64) {
	c.Reference = reference
	if reference > 0 {
		c.OfReference = c.PerSecond / reference
	}
	d.cells = append(d.cells, c)
	_, _ = fmt.Fprintf(d.Log, "%s: %s\n", &c, c.summary())
}

// summary is what the progress line says.
func (c *deliverCell) summary() string {
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
func (d *deliverBench) readReference() error {
	n := d.Events * 3 / 2
	if _, err := d.receiver.do(worker.Command{Do: worker.Reset}); err != nil {
		return err
	}
	posted, err := d.reference.do(worker.Command{Do: worker.Post, N: n})
	if err != nil {
		return err
	}
	arrived, err := d.receiver.do(worker.Command{Do: worker.Reset})
	if err == nil && (arrived.N != n || arrived.Bad != 0) {
		err = fmt.Errorf("of %d reference posts %d arrived, %d of them wrong", n, arrived.N, arrived.Bad)
	}
	d.last = float64(n) / posted.Seconds
	return err
}

// patience is how long to wait for n deliveries.
func patience(n int) time.Duration { return time.Minute + time.Duration(n)*10*time.Millisecond }
