// Package deliver measures the cost of delivering webhooks: accepting and delivering at once, a backlog, latency,
// endpoints that hang or do harm, claims beside a backlog, and an idle process. It compares with a loop that signs and
// posts from memory, and with River.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// A runner measures the parts of a run that deliver.
type runner struct {
	*bench.Bench
	body      []byte // a payload of the service
	receiver  *process.Process
	reference *process.Process
	hostile   *process.Process // nil until it is needed
	last      float64          // the last rate of the reference
	beside    *result.Cell     // measured together with the current cell
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

// plan returns the cells in the order of their measurement: compared cells follow each other, beginning with another
// one in each round.
func plan(b *bench.Bench) (list []result.Cell) {
	most := map[string]int{bench.LatencyPart: 2, bench.BacklogPart: 1, bench.IdlePart: 1} // rounds, if they take long or hardly vary
	for round := range b.Rounds {
		for _, part := range bench.DeliverParts() {
			if !slices.Contains(b.Only, part) || (most[part] > 0 && round >= most[part]) {
				continue
			}
			systems := []string{bench.APISystem}
			if b.River != "" && BesideRiver(part) {
				systems = append(systems, bench.RiverSystem)
			}
			for _, store := range b.Stores {
				cells := requests.Plan(part, store, whats(part, store), []int{0}, []int{0}, systems, 0)
				for i := range cells {
					cells[i].Round = round + 1
				}
				list = append(list, bench.Rotated(cells, round)...)
			}
		}
	}
	return list
}

// BesideRiver reports whether River is measured too.
func BesideRiver(what string) bool { return what == bench.SteadyPart || what == bench.DrainPart }

// whats are the measurements of a part on a store.
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

// referenceConns is the number of connections over which the reference posts.
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

// patience is the timeout for n deliveries.
func patience(n int) time.Duration { return time.Minute + time.Duration(n)*10*time.Millisecond }

// A scene is a set of endpoints. The first ones are healthy, and the first of these are watched.
type scene struct {
	name    string
	healthy int
	watched int
	hostile []string // kinds of the others
}

const (
	openEvery     = 2 * time.Millisecond // between two events of bench.OpenLoop, which go to the endpoints in turn
	hostileOthers = 10
)

// scenePairs are pairs of a scene without hostile endpoints and the scene that is compared with it.
func scenePairs() [][2]scene {
	var others []string
	for i := range hostileOthers {
		others = append(others, process.HostileKinds()[i%len(process.HostileKinds())])
	}
	return [][2]scene{
		{{bench.TenScene, 10, 9, nil}, {bench.HangScene, 9, 9, []string{process.HangKind}}},
		{{bench.TwentyScene, 20, 10, nil}, {bench.HostileScene, 10, 10, others}},
	}
}

// A stage is a scene during its measurement.
type stage struct {
	*target
	scene
	process  *process.Process
	cell     *result.Cell
	accept   worker.Command
	events   int
	seconds  float64 // of deliveries to the watched endpoints
	accepted float64 // seconds of accepting
	commits  []time.Duration
}

// turns is the order in which the two scenes of a pair are loaded.
func turns() []int { return []int{0, 1, 1, 0, 0, 1, 1, 0} }

// isolation measures the deliveries to the watched endpoints in both scenes of a pair. The scenes take turns so that
// both see the same machine. The cell gets the second scene's figures; the first scene's are noted beside it.
func (d *runner) isolation(ctx context.Context, c *result.Cell) (err error) {
	at := slices.IndexFunc(scenePairs(), func(p [2]scene) bool { return strings.HasPrefix(c.What, p[1].name) })
	pair := scenePairs()[at]
	good := *c
	good.What = pair[0].name + strings.TrimPrefix(c.What, pair[1].name)
	var stages [2]*stage
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.end())
		}
	}()
	for i, cell := range []*result.Cell{&good, c} {
		if stages[i], err = d.stage(ctx, cell, pair[i]); err != nil {
			return err
		}
	}
	for _, i := range turns() {
		if err := d.turn(stages[i]); err != nil {
			return err
		}
	}
	for _, s := range stages {
		if err := s.conclude(ctx); err != nil {
			return err
		}
	}
	d.beside = &good
	return nil
}

// stage creates a database and a process that delivers from it.
func (d *runner) stage(ctx context.Context, c *result.Cell, s scene) (*stage, error) {
	urls, err := d.endpoints(ctx, &s)
	if err != nil {
		return nil, err
	}
	t, err := d.newTarget(ctx, c, urls...)
	if err != nil {
		return nil, err
	}
	t.cfg.Cut = true // hanging requests would take long to end
	st := &stage{target: t, scene: s, cell: c}
	st.accept = worker.Command{Do: worker.Accept, N: d.Events * 2 / len(turns()), Callers: d.Callers, Stamps: true}
	if strings.HasSuffix(c.What, bench.OpenLoop) {
		st.accept.N, st.accept.Every = st.accept.N/10, openEvery
	}
	if st.process, err = t.start(ctx, d); err == nil {
		_, err = st.process.Do(worker.Command{Do: worker.Start})
	}
	if err != nil {
		return nil, errors.Join(err, st.end())
	}
	return st, nil
}

func (s *stage) end() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.process.Stop(), s.Drop())
}

// endpoints returns the URLs of a scene.
func (d *runner) endpoints(ctx context.Context, s *scene) (urls []string, err error) {
	for i := range s.healthy {
		urls = append(urls, d.receiver.Ready.Addr+"/"+strconv.Itoa(i))
	}
	if len(s.hostile) > 0 && d.hostile == nil {
		if d.hostile, err = d.startWorker(ctx, worker.Config{Role: process.HostileRole}); err != nil {
			return nil, err
		}
	}
	for i, kind := range s.hostile {
		urls = append(urls, d.hostile.Ready.Addrs[kind]+"/"+strconv.Itoa(s.healthy+i))
	}
	return urls, nil
}

// inTurn returns how many of n events the first endpoints get, if all endpoints take turns.
func inTurn(n, all, first int) int { return n/all*first + min(n%all, first) }

// turn loads a stage until the healthy endpoints have received their deliveries.
func (d *runner) turn(s *stage) error {
	if _, err := d.receiver.Do(worker.Command{Do: worker.Reset}); err != nil {
		return err
	}
	accepted, err := s.process.Do(s.accept)
	if err != nil {
		return err
	}
	n := inTurn(s.accept.N, len(s.hooks), s.healthy)
	wait := worker.Command{Do: worker.Wait, N: n, Endpoints: s.healthy, Timeout: patience(n)}
	if _, err := d.receiver.Do(wait); err != nil {
		return err
	}
	r, err := d.receiver.Do(worker.Command{Do: worker.Arrivals})
	if err != nil {
		return err
	}
	p, err := passage(&r, s.watched, accepted.Stamps)
	if err != nil {
		return err
	}
	s.events += len(p.commits)
	s.seconds += p.seconds
	s.accepted += accepted.Seconds
	s.commits = append(s.commits, p.commits...)
	return nil
}

// conclude adds the figures and checks the store's records of the deliveries.
func (s *stage) conclude(ctx context.Context) error {
	c := s.cell
	(&passing{seconds: s.seconds, commits: s.commits}).figures(c, s.events)
	c.Add("accepted/s", float64(s.accept.N*len(turns())/2)/s.accepted)
	peak, err := proc.PeakMB(s.process.PID)
	if err != nil {
		return err
	}
	c.Add("peak-MB", peak)
	return s.settled(ctx)
}

// settled waits until the arrivals at the watched endpoints are recorded.
func (s *stage) settled(ctx context.Context) error {
	deadline := time.Now().Add(patience(s.events))
	for {
		done, err := countDelivered(ctx, s.Database, s.hooks[:s.watched])
		switch {
		case err != nil:
			return err
		case done == s.events:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the store says that %d of %d deliveries were made", done, s.events)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
