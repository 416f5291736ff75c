package deliver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A target is a system with a database of its own.
type target struct {
	*database.Database
	cfg     worker.Config
	program []string
	hooks   []formsvc.ID // in the order of the URLs; none for peers
}

// newTarget creates a target that delivers to these URLs, with one campaign for each.
func (d *runner) newTarget(ctx context.Context, c *result.Cell, urls ...string) (*target, error) {
	t := &target{program: []string{d.Self, process.Command}}
	var err error
	if t.Database, err = database.New(ctx, c.Store, d.Dir); err != nil {
		return nil, err
	}
	t.cfg = worker.Config{Role: process.SenderRole, DSN: t.DSN}
	if c.System == bench.RiverSystem {
		t.program = []string{d.River}
		t.cfg.URL, t.cfg.Body, t.cfg.Conns = urls[0], d.body, riverWorkers
	} else if err := t.subscribe(ctx, urls); err != nil {
		return nil, errors.Join(err, t.Drop())
	}
	t.cfg.Profile = d.Profile(c)
	return t, nil
}

// riverWorkers is the number of workers that suits River best here, on both stores.
const riverWorkers = 256

// subscribe creates an account with a campaign and a webhook for each URL.
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

// steady measures accepting events one by one while the same process delivers.
func (d *runner) steady(ctx context.Context, c *result.Cell) error {
	return d.deliver(ctx, c, worker.Command{Do: worker.Accept, N: d.Events, Callers: d.Callers, Stamps: true}, false)
}

// drain measures delivering a backlog that is queued when the process starts.
func (d *runner) drain(ctx context.Context, c *result.Cell) error {
	return d.deliver(ctx, c, worker.Command{Do: worker.Accept, N: d.Events, Callers: d.Callers}, true)
}

// latencyEvery is the time between two events when latency is measured.
const latencyEvery = 20 * time.Millisecond

// latency measures an open loop of few events.
func (d *runner) latency(ctx context.Context, c *result.Cell) error {
	n := max(1, int(d.Latency/latencyEvery))
	return d.deliver(ctx, c, worker.Command{Do: worker.Accept, N: n, Every: latencyEvery, Stamps: true}, false)
}

// deliver has events accepted and delivered: by one process, or accepted by another process before or meanwhile.
func (d *runner) deliver(ctx context.Context, c *result.Cell, accept worker.Command, before bool) (err error) {
	t, err := d.newTarget(ctx, c, d.receiver.Ready.Addr+"/0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Drop()) }()
	var processes []*process.Process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop())
		}
	}()
	start := func() (*process.Process, error) {
		p, err := process.Start(ctx, t.cfg, d.Log, t.program[0], t.program[1:]...)
		if err == nil {
			processes = append(processes, p)
		}
		return p, err
	}
	var accepted worker.Reply
	profile := t.cfg.Profile
	if before {
		t.cfg.Profile = ""
		p, err := start()
		if err == nil {
			accepted, err = p.Do(accept)
		}
		if err = errors.Join(err, p.Stop()); err != nil {
			return err
		}
		t.cfg.Profile, processes = profile, nil
	}
	deliverer, err := start()
	acceptor := deliverer
	if err == nil && c.What == bench.AcrossWhat {
		t.cfg.Profile = ""
		acceptor, err = start()
	}
	if err != nil {
		return err
	}
	err = d.watched(c, accept.N, processes, func() (err error) {
		if _, err = deliverer.Do(worker.Command{Do: worker.Start}); err != nil {
			return err
		}
		if !before {
			if accepted, err = acceptor.Do(accept); err != nil {
				return err
			}
		}
		if _, err = d.receiver.Do(worker.Command{Do: worker.Wait, N: accept.N, Timeout: patience(accept.N)}); err != nil {
			return err
		}
		_, err = deliverer.Do(worker.Command{Do: worker.Stop})
		return err
	})
	if err != nil {
		return err
	}
	if accept.Every == 0 {
		c.Add("accepted/s", float64(accept.N)/accepted.Seconds)
	}
	return d.conclude(ctx, c, t, deliverer, accept.N, accepted.Stamps)
}

// conclude adds the figures of the arrivals, ends the process and checks its records: they must have one delivery for
// each event.
func (d *runner) conclude(ctx context.Context, c *result.Cell, t *target, s *process.Process, events int, stamps []worker.Stamp) error {
	r, err := d.receiver.Do(worker.Command{Do: worker.Arrivals})
	if err != nil {
		return err
	}
	p, err := passage(&r, 0, stamps)
	if err != nil {
		return err
	}
	p.figures(c, r.N)
	peak, err := proc.PeakMB(s.PID)
	if err != nil {
		return err
	}
	c.Add("peak-MB", peak)
	done := worker.Reply{}
	if c.System == bench.RiverSystem {
		if done, err = s.Do(worker.Command{Do: worker.Count}); err != nil {
			return err
		}
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if c.System != bench.RiverSystem {
		if done.N, err = countDelivered(ctx, t.Database, t.hooks); err != nil {
			return err
		}
	}
	if done.N != events || r.N != events {
		return fmt.Errorf("%d of %d deliveries arrived, and %d were made as the system says", r.N, events, done.N)
	}
	return nil
}

// A passing has the times that some deliveries took from the service to the receiver.
type passing struct {
	seconds float64         // from the first arrival to the last
	commits []time.Duration // from commit to arrival, if both are known
	calls   []time.Duration // the same from before the call
}

// passage follows the deliveries that arrived at the first endpoints, or at all for 0.
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

// figures adds the rate and the latencies of n deliveries to a cell.
func (p *passing) figures(c *result.Cell, n int) {
	if p.seconds > 0 {
		c.Figures = slices.Insert(c.Figures, 0, result.Figure{Unit: "deliveries/s", Value: float64(n) / p.seconds})
	}
	for i, took := range [][]time.Duration{p.commits, p.calls} {
		if len(took) > 0 {
			slices.Sort(took)
			c.Add([]string{"", "call-"}[i]+"p50-ms", loadgen.Quantile(took, 50, 100))
			c.Add([]string{"", "call-"}[i]+"p99-ms", loadgen.Quantile(took, 99, 100))
		}
	}
}

// watched discards earlier arrivals and measures the CPU time of n deliveries.
func (d *runner) watched(c *result.Cell, n int, senders []*process.Process, run func() error) error {
	if _, err := d.receiver.Do(worker.Command{Do: worker.Reset}); err != nil {
		return err
	}
	pids := []int{d.receiver.PID}
	for _, s := range senders {
		pids = append(pids, s.PID)
	}
	before, err := proc.ReadTimes(pids...)
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	after, err := proc.ReadTimes(pids...)
	charge(c, &before, &after, n)
	return err
}

// charge divides the CPU time of the receiver and of senders by deliveries. CPU is the time of the whole system:
// everything else on the machine counts on Postgres only.
func charge(c *result.Cell, before, after *proc.Times, n int) {
	seconds, each, _, other := after.Since(before)
	per10k := seconds * 1e4 / float64(n)
	senders := 0.0
	for _, cores := range each[1:] {
		senders += cores
	}
	cpu := senders + each[0]
	if c.Store == bench.PostgresStore {
		cpu += other
	}
	c.Figures = append(c.Figures, []result.Figure{
		{Unit: "CPU-s/10k", Value: cpu * per10k},
		{Unit: "sender-s/10k", Value: senders * per10k},
		{Unit: "receiver-s/10k", Value: each[0] * per10k},
		{Unit: "other-s/10k", Value: other * per10k},
		{Unit: "other-cores", Value: other},
	}...)
}

// countDelivered returns the number of deliveries to the webhooks that are delivered and have an attempt that says so.
func countDelivered(ctx context.Context, d *database.Database, hooks []formsvc.ID) (n int, err error) {
	list := make([]string, len(hooks))
	for i, id := range hooks {
		list[i] = "'" + string(id) + "'"
	}
	err = d.Use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries d WHERE state = 1 AND webhook_id IN ("+
			strings.Join(list, ", ")+") AND EXISTS (SELECT 1 FROM formsvc_attempts a WHERE a.delivery_id = d.id "+
			"AND a.number = d.attempts AND a.error = '')").Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count what was delivered: %w", err)
	}
	return n, nil
}

// countWaiting returns the number of pending deliveries to a webhook.
func countWaiting(ctx context.Context, d *database.Database, hook formsvc.ID) (n int, err error) {
	err = d.Use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries WHERE state = 0 AND webhook_id = '"+
			string(hook)+"'").Scan(&n)
	})
	return n, err
}

// fillStatement stores deliveries: webhook, number of the first, count, due time of the first.
func fillStatement(d *database.Database) string {
	const columns = `INSERT INTO formsvc_deliveries
		(webhook_id, id, event_id, event_type, due_at, lease, created_at, updated_at, size, kind, state, attempts) `
	if strings.HasPrefix(d.DSN, "sqlite:") {
		return `WITH RECURSIVE n (i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2 + ?3) ` + columns +
			`SELECT ?1, printf('%08x-0000-7000-8000-000000000000', i), printf('%08x-0000-7000-8000-000000000000', i),
			1, ?4 + i, 0, ?4, 0, 800, 0, 0, 0 FROM n`
	}
	return columns + `SELECT $1::uuid, (lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		1, $4::bigint + i, 0, $4::bigint, 0, 800, 0, 0, 0 FROM generate_series($2::bigint, $2::bigint + $3::bigint - 1) i`
}

// fillDeliveries stores n overdue deliveries of a webhook.
func fillDeliveries(ctx context.Context, d *database.Database, db *sql.DB, hook formsvc.ID, first, n int, due time.Time) error {
	_, err := db.ExecContext(ctx, fillStatement(d), string(hook), first, n, due.UnixMicro())
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}
