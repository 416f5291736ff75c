package deliver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// Where the engine runs when latency is measured.
const (
	WithinHow = "engine in the same process"
	acrossHow = "engine in another process"
)

// A target is a system with a database of its own.
type target struct {
	*database.Database
	cfg     worker.Config
	program []string
	hooks   []formsvc.ID // in the order of the URLs; none for peers
}

// newTarget makes one that delivers to these URLs, responses of one campaign to
// each.
func (d *runner) newTarget(ctx context.Context, c *Cell, urls ...string) (*target, error) {
	t := &target{program: []string{d.Self, process.Command}}
	var err error
	if c.Store == bench.PostgresStore {
		t.Database, err = database.NewPostgres(ctx)
	} else {
		t.Database, err = database.New(ctx, c.Store, d.Dir)
	}
	if err != nil {
		return nil, err
	}
	t.cfg = worker.Config{Role: process.SenderRole, DSN: t.DSN}
	if c.System == RiverSystem {
		t.program = []string{d.River}
		t.cfg.URL, t.cfg.Body, t.cfg.Conns = urls[0], d.body, riverWorkers
	} else if err := t.subscribe(ctx, urls); err != nil {
		return nil, errors.Join(err, t.Drop())
	}
	if d.Profiles != "" {
		name := fmt.Sprintf("%s-%s-%s-%s-round%d", c.What, c.Store, c.System, c.How, c.Round)
		name = strings.Trim(strings.NewReplacer(" ", "-", ",", "", "/", "-", "--", "-").Replace(name), "-")
		t.cfg.Profile = filepath.Join(d.Profiles, name+".pprof")
	}
	return t, nil
}

// riverWorkers is what suits the peer best here, on either store.
const riverWorkers = 256

// subscribe makes an account with a campaign and a webhook for each URL.
func (t *target) subscribe(ctx context.Context, urls []string) error {
	w, err := t.NewAccount(ctx)
	if err != nil {
		return err
	}
	account := w.Campaign.AccountID
	t.cfg.Account = string(account)
	return t.With(ctx, func(_ database.Store, svc *formsvc.Service) error {
		for _, url := range urls {
			campaign, err := svc.Campaigns.Create(ctx, account, database.CampaignInput())
			if err != nil {
				return err
			}
			hook, _, err := svc.Webhooks.Create(ctx, account, formsvc.WebhookInput{
				URL: url, Events: []formsvc.EventType{webhook.ResponseCreated}, CampaignID: campaign.ID, Secret: worker.Secret,
			})
			if err != nil {
				return err
			}
			t.cfg.Campaigns, t.hooks = append(t.cfg.Campaigns, string(campaign.ID)), append(t.hooks, hook.ID)
		}
		return nil
	})
}

// start starts a process of the system.
func (t *target) start(ctx context.Context, d *runner) (*process.Process, error) {
	return process.Start(ctx, t.cfg, d.Log, t.program[0], t.program[1:]...)
}

// sequence has workers do one thing after the other.
func sequence(steps ...func() (worker.Reply, error)) (r worker.Reply, err error) {
	for _, step := range steps {
		reply, err := step()
		if err != nil {
			return r, err
		}
		if reply.Seconds > 0 { // the one that accepted
			r = reply
		}
	}
	return r, nil
}

// steady measures accepting one by one while the same process delivers.
func (d *runner) steady(ctx context.Context, c *Cell) (err error) {
	t, err := d.newTarget(ctx, c, d.receiver.Ready.Addr+"/0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Drop()) }()
	s, err := t.start(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	accepted, err := d.watched(c, d.Events, []*process.Process{s}, func() (worker.Reply, error) {
		return sequence(
			s.Step(worker.Command{Do: worker.Start}),
			s.Step(worker.Command{Do: worker.Accept, N: d.Events, Callers: d.Callers, Stamps: true}),
			d.receiver.Step(worker.Command{Do: worker.Wait, N: d.Events, Timeout: patience(d.Events)}),
			s.Step(worker.Command{Do: worker.Stop}),
		)
	})
	if err != nil {
		return err
	}
	c.AcceptPerSecond = float64(d.Events) / accepted.Seconds
	return d.conclude(ctx, c, t, s, accepted.Stamps)
}

// drain measures delivering what is queued when the process starts.
func (d *runner) drain(ctx context.Context, c *Cell) (err error) {
	t, err := d.newTarget(ctx, c, d.receiver.Ready.Addr+"/0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Drop()) }()
	profile := t.cfg.Profile
	t.cfg.Profile = ""
	accepted, err := d.queued(ctx, t)
	if err != nil {
		return err
	}
	t.cfg.Profile = profile
	s, err := t.start(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	_, err = d.watched(c, d.Events, []*process.Process{s}, func() (worker.Reply, error) {
		return sequence(
			s.Step(worker.Command{Do: worker.Start}),
			d.receiver.Step(worker.Command{Do: worker.Wait, N: d.Events, Timeout: patience(d.Events)}),
			s.Step(worker.Command{Do: worker.Stop}),
		)
	})
	if err != nil {
		return err
	}
	c.AcceptPerSecond = float64(d.Events) / accepted.Seconds
	return d.conclude(ctx, c, t, s, nil)
}

// queued accepts the events in a process that delivers none.
func (d *runner) queued(ctx context.Context, t *target) (accepted worker.Reply, err error) {
	s, err := t.start(ctx, d)
	if err != nil {
		return accepted, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	return s.Do(worker.Command{Do: worker.Accept, N: d.Events, Callers: d.Callers})
}

// latencyEvery is the time between two events when latency is measured.
const latencyEvery = 20 * time.Millisecond

// latency measures an open loop of few events.
func (d *runner) latency(ctx context.Context, c *Cell) (err error) {
	t, err := d.newTarget(ctx, c, d.receiver.Ready.Addr+"/0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Drop()) }()
	deliverer, err := t.start(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deliverer.Stop()) }()
	all := []*process.Process{deliverer}
	if c.How == acrossHow {
		t.cfg.Profile = ""
		other, err := t.start(ctx, d)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Stop()) }()
		all = append(all, other)
	}
	n := max(1, int(d.Latency/latencyEvery))
	accepted, err := d.watched(c, n, all, func() (worker.Reply, error) {
		return sequence(
			deliverer.Step(worker.Command{Do: worker.Start}),
			all[len(all)-1].Step(worker.Command{Do: worker.Accept, N: n, Every: latencyEvery, Stamps: true}),
			d.receiver.Step(worker.Command{Do: worker.Wait, N: n, Timeout: patience(n)}),
			deliverer.Step(worker.Command{Do: worker.Stop}),
		)
	})
	if err != nil {
		return err
	}
	return d.conclude(ctx, c, t, deliverer, accepted.Stamps)
}

// conclude takes the figures from what arrived, ends the process and checks what
// the system says of it.
func (d *runner) conclude(ctx context.Context, c *Cell, t *target, s *process.Process, stamps []worker.Stamp) error {
	r, err := d.receiver.Do(worker.Command{Do: worker.Arrivals})
	if err != nil {
		return err
	}
	p, err := passage(&r, 0, stamps)
	if err != nil {
		return err
	}
	c.take(&p, r.N)
	peak, err := proc.PeakMemory(s.PID)
	if err != nil {
		return err
	}
	c.PeakMB = float64(peak) / 1e6
	if c.System == RiverSystem {
		done, err := s.Do(worker.Command{Do: worker.Count})
		if err == nil && done.N != c.Events {
			err = fmt.Errorf("%d of %d jobs are completed", done.N, c.Events)
		}
		return errors.Join(err, s.Stop())
	}
	if err := s.Stop(); err != nil {
		return err
	}
	done, err := countDelivered(ctx, t.Database, t.hooks)
	if err == nil && done != c.Events {
		err = fmt.Errorf("the store says that %d of %d deliveries were made", done, c.Events)
	}
	return err
}

// A passing is the way of some deliveries from the service to the receiver.
type passing struct {
	seconds float64         // from the first arrival to the last
	commits []time.Duration // from commit to arrival, when both are known
	calls   []time.Duration // the same from just before the call
}

// passage follows what arrived at the first endpoints, or at all when that is 0.
func passage(r *worker.Reply, endpoints int, stamps []worker.Stamp) (p passing, err error) {
	if r.Bad > 0 {
		return p, fmt.Errorf("%d of %d requests were wrong: not signed, or not what was accepted", r.Bad, r.Requests)
	}
	var first, last int64
	for _, a := range r.Arrivals {
		if endpoints > 0 && a.Endpoint >= endpoints {
			continue
		}
		if first == 0 || a.At < first {
			first = a.At
		}
		last = max(last, a.At)
		if stamps == nil {
			continue
		}
		if a.Number >= len(stamps) {
			return p, fmt.Errorf("event %d arrived, which was never accepted", a.Number)
		}
		s := stamps[a.Number]
		// It may arrive before the caller learns that it was committed.
		p.commits = append(p.commits, time.Duration(max(0, a.At-s.Done)))
		p.calls = append(p.calls, time.Duration(a.At-s.Begin))
	}
	p.seconds = time.Duration(last - first).Seconds()
	return p, nil
}

// take computes rate and latencies of n deliveries.
func (c *Cell) take(p *passing, n int) {
	c.Events = n
	if p.seconds > 0 {
		c.PerSecond = float64(n) / p.seconds
	}
	slices.Sort(p.commits)
	slices.Sort(p.calls)
	c.P50, c.P99 = stats.Milliseconds(stats.Percentile(p.commits, 50)), stats.Milliseconds(stats.Percentile(p.commits, 99))
	c.CallP50, c.CallP99 = stats.Milliseconds(stats.Percentile(p.calls, 50)), stats.Milliseconds(stats.Percentile(p.calls, 99))
}

// watched forgets what arrived before, and measures the CPU time that n
// deliveries take.
func (d *runner) watched(
	c *Cell, n int, senders []*process.Process, run func() (worker.Reply, error),
) (worker.Reply, error) {
	if _, err := d.receiver.Do(worker.Command{Do: worker.Reset}); err != nil {
		return worker.Reply{}, err
	}
	pids := []int{d.receiver.PID}
	for _, s := range senders {
		pids = append(pids, s.PID)
	}
	before, err := proc.ReadTimes(pids)
	if err != nil {
		return worker.Reply{}, err
	}
	reply, err := run()
	if err != nil {
		return reply, err
	}
	after, err := proc.ReadTimes(pids)
	c.charge(before, after, n)
	return reply, err
}

// charge divides CPU time by deliveries.
func (c *Cell) charge(before, after proc.Times, n int) {
	per10k := 1e4 / float64(n)
	var senders time.Duration
	for i := range after.Each[1:] {
		senders += after.Each[i+1] - before.Each[i+1]
	}
	receiver := after.Each[0] - before.Each[0]
	other := after.Machine - before.Machine - (after.Self - before.Self) - senders - receiver
	c.SenderCPU, c.ReceiverCPU = senders.Seconds()*per10k, receiver.Seconds()*per10k
	c.OtherCPU = other.Seconds() * per10k
	c.OtherCores = other.Seconds() / after.At.Sub(before.At).Seconds()
	c.CPU = c.SenderCPU + c.ReceiverCPU
	if c.Store == bench.PostgresStore {
		c.CPU += c.OtherCPU
	}
}
