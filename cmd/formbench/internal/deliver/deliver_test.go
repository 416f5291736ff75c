package deliver

import (
	"database/sql"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/proc"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// TestDeliveredNeedsAttempt checks that a delivery counts only with an attempt that reports it delivered.
func TestDeliveredNeedsAttempt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, s, target := deliverTen(t)
	for _, c := range []struct {
		change string
		want   int
	}{
		{"SELECT 1", 10},
		{"DELETE FROM formsvc_attempts WHERE delivery_id = (SELECT min(delivery_id) FROM formsvc_attempts)", 9},
		{"UPDATE formsvc_attempts SET error = 'timeout' WHERE delivery_id = (SELECT max(delivery_id) FROM formsvc_attempts)", 8},
		{"UPDATE formsvc_deliveries SET state = 0", 0},
	} {
		err := target.Use(func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, c.change)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := countDelivered(ctx, target.Database, target.hooks); err != nil || n != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.change, n, err, c.want)
		}
	}
	if err := d.conclude(ctx, cellOf(bench.SteadyPart), target, s, 10, nil); err == nil || !strings.Contains(err.Error(), "10 of 10 deliveries arrived, and 0") {
		t.Errorf("a cell without its deliveries: %v", err)
	}
}

func cellOf(part string) *result.Cell {
	return &result.Cell{Key: result.Key{Part: part, Store: bench.SQLiteStore, System: bench.APISystem}}
}

// check compares figures.
func check(t *testing.T, c *result.Cell, want map[string]float64) {
	t.Helper()
	for unit, value := range want {
		if got, ok := c.Get(unit); !ok || math.Abs(got-value) > 1e-9 {
			t.Errorf("%s of %s is %v, want %v", unit, c.Store, got, value)
		}
	}
}

// deliverTen lets a process deliver ten responses on SQLite.
func deliverTen(t *testing.T) (*runner, *process.Process, *target) {
	t.Helper()
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &runner{Bench: &bench.Bench{Self: self, Log: io.Discard, Options: bench.Options{Events: 10, Dir: t.TempDir()}}}
	if d.receiver, err = d.startWorker(ctx, worker.Config{Role: process.ReceiverRole}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.receiver.Stop() })
	target, err := d.newTarget(ctx, cellOf(bench.SteadyPart), d.receiver.Ready.Addr+"/0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.start(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	for _, step := range []struct {
		p *process.Process
		c worker.Command
	}{
		{s, worker.Command{Do: worker.Start}}, {s, worker.Command{Do: worker.Accept, N: 10, Callers: 2}},
		{d.receiver, worker.Command{Do: worker.Wait, N: 10, Timeout: time.Minute}}, {s, worker.Command{Do: worker.Stop}},
	} {
		if _, err := step.p.Do(step.c); err != nil {
			t.Fatal(err)
		}
	}
	return d, s, target
}

// TestClaimsRejectShortClaims checks that a claim that finds too few deliveries is an error.
func TestClaimsRejectShortClaims(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := &runner{Bench: &bench.Bench{Log: io.Discard, Options: bench.Options{Dir: t.TempDir()}}}
	urls := make([]string, claimEndpoints+1)
	for i := range urls {
		urls[i] = "http://127.0.0.1/" + strconv.Itoa(i)
	}
	target, err := d.newTarget(ctx, cellOf(bench.BacklogPart), urls...)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.pile(ctx, bench.NeverWhat, 100, 1); err != nil {
		t.Fatal(err)
	}
	for hook, want := range map[int]int{0: 8, claimEndpoints: 100} {
		if n, err := countWaiting(ctx, target.Database, target.hooks[hook]); err != nil || n != want {
			t.Errorf("%d deliveries wait for webhook %d, want %d, %v", n, hook, want, err)
		}
	}
	store, err := database.OpenStore(ctx, target.DSN, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if claims, took, err := database.Claim(ctx, store, target.endpoints()); err != nil || len(claims) != database.Claimed || took <= 0 {
		t.Errorf("got %d claims in %v, %v", len(claims), took, err)
	}
	if _, _, err := database.Claim(ctx, store, target.endpoints()); err == nil {
		t.Error("a claim of what is left counts")
	}
}

func TestPassageMeasuresArrivals(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	r := &worker.Reply{N: 3, Arrivals: []worker.Arrival{
		{At: 12 * second, Number: 1}, {At: 10 * second, Number: 0, Endpoint: 1}, {At: 99 * second, Number: 2, Endpoint: 2},
	}}
	stamps := []worker.Stamp{{Begin: 8 * second, Done: 11 * second}, {Begin: 9 * second, Done: 11 * second}, {}}
	p, err := passage(r, 2, stamps)
	if err != nil || p.seconds != 2 || len(p.commits) != 2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	var c result.Cell
	p.figures(&c, 2)
	check(t, &c, map[string]float64{"deliveries/s": 1, "p50-ms": 0, "p99-ms": 1000, "call-p50-ms": 2000, "call-p99-ms": 3000})
	if _, err := passage(r, 0, stamps[:1]); err == nil {
		t.Error("an event that was not accepted is none")
	}
	if _, err := passage(&worker.Reply{Bad: 1}, 0, nil); err == nil {
		t.Error("a wrong signature is none")
	}
}

func TestChargeDividesCPUTime(t *testing.T) {
	t.Parallel()
	at := time.Now()
	before := proc.Times{At: at, Each: []time.Duration{1, 2, 3}, Self: 5, Machine: 100}
	after := proc.Times{
		At: at.Add(2 * time.Second), Each: []time.Duration{1 + time.Second, 2 + time.Second, 3 + 2*time.Second},
		Self: 5 + time.Second/2, Machine: 100 + 8*time.Second,
	}
	for store, want := range map[string]float64{bench.SQLiteStore: 2, bench.PostgresStore: 3.75} {
		c := result.Cell{Key: result.Key{Store: store}}
		charge(&c, &before, &after, 20_000)
		check(t, &c, map[string]float64{"CPU-s/10k": want, "receiver-s/10k": 0.5, "sender-s/10k": 1.5, "other-s/10k": 1.75, "other-cores": 1.75})
	}
}

func TestInTurnCountsEventsOfFirstEndpoints(t *testing.T) {
	t.Parallel()
	for n := range 50 {
		for first := range 11 {
			want := 0
			for i := range n {
				if i%10 < first {
					want++
				}
			}
			if got := inTurn(n, 10, first); got != want {
				t.Errorf("%d of %d events: got %d, want %d", first, n, got, want)
			}
		}
	}
}

func TestDeliverPlan(t *testing.T) {
	t.Parallel()
	b := &bench.Bench{Options: bench.Options{
		Rounds: 3, Stores: []string{bench.SQLiteStore, bench.PostgresStore}, Only: []string{bench.DrainPart, bench.LatencyPart, bench.IdlePart}, River: "x",
	}}
	got := map[string]int{}
	var systems []string
	for _, c := range plan(b) {
		got[c.Part]++
		if c.Part == bench.DrainPart && c.Store == bench.PostgresStore {
			systems = append(systems, c.System)
		}
	}
	if got[bench.DrainPart] != 12 || got[bench.LatencyPart] != 6 || got[bench.IdlePart] != 2 || len(got) != 3 {
		t.Errorf("got %v", got)
	}
	want := []string{bench.APISystem, bench.RiverSystem, bench.RiverSystem, bench.APISystem, bench.APISystem, bench.RiverSystem}
	if !slices.Equal(systems, want) {
		t.Errorf("got %v, want %v", systems, want)
	}
}
