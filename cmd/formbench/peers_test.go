package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// peersEnv names the environment variable with the program of the module peers,
// which "make test" builds.
const peersEnv = "FORMSVC_TEST_PEERS"

func peerProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv(peersEnv)
	if program == "" && os.Getenv("CI") == "true" {
		t.Fatal(peersEnv + " is not set, and in CI nothing may be skipped: run the tests with \"make test\"")
	}
	if program == "" {
		t.Skip("SKIPPED: " + peersEnv + " does not name the program: go -C cmd/formbench/peers build -o /some/where/peers .")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatal(err)
	}
	return program
}

// peersSmall makes every part beside peers short.
var peersSmall = []string{"-rounds", "1", "-peer-fill", "400", "-peer-conns", "1,32", "-file-size", "100000", "-file-large", "3000000"}

func TestPeersEveryCell(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, append([]string{"-stores", "sqlite", "-only", "peers", "-peers", peerProgram(t)}, peersSmall...)...)
	for _, conns := range []int{1, 32} {
		for _, system := range []string{ceilingSystem, groupSystem, pocketSystem, tokenSystem, fullSystem, batchSystem} {
			if !hasRow(table, createWhat, 0, conns, system) {
				t.Errorf("no row for create, %d connections, %s", conns, system)
			}
		}
	}
	reads := 0
	for _, plan := range readPlans() {
		for _, system := range plan.systems {
			reads++
			if !hasRow(table, plan.what, 400, plan.conns, system) {
				t.Errorf("no row for %s, %d connections, %s", plan.what, plan.conns, system)
			}
		}
	}
	if want := 2*6 + 2 + reads; len(r.Peers.Requests) != want || len(r.Peers.Files) != 3 || len(r.Peers.Starts) != 2 {
		t.Errorf("got %d cells of requests, want %d, %d of files and %d starts",
			len(r.Peers.Requests), want, len(r.Peers.Files), len(r.Peers.Starts))
	}
	for _, c := range r.Peers.Requests {
		if c.Errors != 0 || c.Requests == 0 || c.P99 < c.P50 || c.P999 < c.P99 || c.Max < c.P999 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	for _, c := range r.Peers.Files {
		if c.Bytes != 3_000_000 || c.PerSecond <= 0 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	for _, c := range r.Peers.Starts {
		if c.Ready <= 0 || c.IdleMB <= 0 {
			t.Errorf("implausible start %+v", c)
		}
	}
	for _, g := range r.Goals {
		if g.Measured == (g.Store == postgresStore) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if len(r.Peers.Ratios) == 0 || len(r.Goals) < 15 {
		t.Errorf("got %d ratios and %d goals", len(r.Peers.Ratios), len(r.Goals))
	}
}

func TestPeersPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	table, r := benchmark(t, append([]string{"-stores", "postgres", "-only", "peers"}, peersSmall...)...)
	for _, system := range []string{groupSystem, singleSystem, insertSystem} {
		if !hasRow(table, createWhat, 0, 32, system) {
			t.Errorf("no row for %s", system)
		}
	}
	if len(r.Peers.Requests) != 3 || len(r.Goals) != 1 || !r.Goals[0].Measured {
		t.Errorf("got %d cells and the goals %+v", len(r.Peers.Requests), r.Goals)
	}
	if !strings.Contains(table, "NOT MEASURED: PocketBase") {
		t.Errorf("nobody says that PocketBase is missing in\n%s", table)
	}
}

func TestPeersAbsent(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-only", "peers")
	if !strings.Contains(table, "NOT MEASURED: PocketBase") || len(r.Peers.Requests) != 0 {
		t.Errorf("got %+v:\n%s", r.Peers, table)
	}
	for _, g := range r.Goals {
		if g.Measured {
			t.Errorf("goal %q was measured", g.Text)
		}
	}
}

// TestPocketLosses makes sure that a record that was acknowledged and is not there
// is noticed, and one that nobody acknowledged.
func TestPocketLosses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &peerBench{bench: &bench{log: io.Discard}}
	p.dir, p.PeerProgram = t.TempDir(), peerProgram(t)
	s, err := p.newPocket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.fill(ctx, 30); err != nil {
		t.Fatal(err)
	}
	for answered, lost := range map[int]bool{29: true, 30: false, 31: true} {
		if err := s.holds(ctx, answered, pocketbase.Responses); (err != nil) != lost {
			t.Errorf("%d acknowledged of 30: %v", answered, err)
		}
	}
	files := &pocketFileScene{s}
	if err := files.holds(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "storage"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "storage", "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.holds(ctx, 0); err == nil {
		t.Error("a file without a record is not noticed")
	}
}

// TestPocketbase makes sure that the peer does what it is compared for.
func TestPocketbase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &peerBench{bench: &bench{log: os.Stderr}}
	p.dir, p.PeerProgram = t.TempDir(), peerProgram(t)
	s, err := p.newPocket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := p.startPocket(ctx, &cell{System: batchSystem}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		collection, token string
		status            int
	}{
		{pocketbase.Responses, "", http.StatusOK},
		{pocketbase.Private, srv.token, http.StatusOK},
		{pocketbase.Private, "", http.StatusForbidden},
		{pocketbase.Private, srv.token + "x", http.StatusForbidden},
	} {
		work, err := createPocket(ctx, c.collection, c.token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ask(ctx, srv.addr, work.requests[0], c.status); err != nil {
			t.Errorf("%s with the token %.10q: %v", c.collection, c.token, err)
		}
	}
	batch, err := batchPocket(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := ask(ctx, srv.addr, batch.requests[0], batch.status)
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ Status int }
	if err := json.Unmarshal(body, &parts); err != nil || len(parts) != 3 ||
		slices.ContainsFunc(parts, func(p struct{ Status int }) bool { return p.Status != http.StatusOK }) {
		t.Errorf("the batch is answered with %s", body)
	}
	if err := srv.stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.holds(ctx, 1, pocketbase.Events, pocketbase.Deliveries, pocketbase.Private); err != nil {
		t.Error(err)
	}
	if err := s.holds(ctx, 2, pocketbase.Responses); err != nil {
		t.Error(err)
	}
}

// TestOpenLoop makes sure that requests come due at their rate whatever the
// answers, and that latencies begin when they are due.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	addr := serveHere(t, serverConfig{System: ceilingSystem, Responses: minFill})
	w := inventedWorld()
	work, err := w.creates()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	l := &load{workload: work, addr: addr, conns: 3, rate: 500, begin: begin, end: begin.Add(400 * time.Millisecond)}
	s, err := l.run(context.WithoutCancel(t.Context()))
	if err != nil || s.err != nil {
		t.Fatal(err, s.err)
	}
	// 200 come due, less what passed before the first.
	if s.answered < 100 || s.answered > 201 || len(s.latencies) != s.answered {
		t.Errorf("%d requests were answered and %d counted", s.answered, len(s.latencies))
	}

	late := time.Now().Add(-time.Second)
	l = &load{workload: work, addr: addr, conns: 1, end: time.Now().Add(time.Second), due: make(chan time.Time, 1)}
	l.due <- late
	close(l.due)
	conns, err := l.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conns[0].Close() }()
	s = sample{}
	l.work(conns[0], 0, &s)
	if len(s.latencies) != 1 || s.latencies[0] < time.Second {
		t.Errorf("a request that was a second late took %v", s.latencies)
	}
}

func TestPeerRatios(t *testing.T) {
	t.Parallel()
	made := func(what, system string, round int, f figures) cell {
		return cell{What: what, Store: sqliteStore, System: system, Conns: 1, Round: round, figures: f}
	}
	list := peerRatios([]cell{
		made(createWhat, groupSystem, 1, figures{PerSecond: 40, ServerMicros: 10}),
		made(createWhat, pocketSystem, 1, figures{PerSecond: 10, ServerMicros: 50}),
		made(createWhat, pocketSystem, 2, figures{PerSecond: 5, ServerMicros: 60}),
		made(createWhat, groupSystem, 2, figures{PerSecond: 30, ServerMicros: 10}),
		made(pageWhat, offsetSystem, 1, figures{PerSecond: 7, P50: 2}),
		made(pageWhat, createdSystem, 1, figures{PerSecond: 7, P50: 500}),
	})
	want := map[string]float64{
		"formsvc/PocketBase requests/s": 5, "PocketBase/formsvc server CPU": 5.5,
		"PocketBase, by created/formsvc, offset p50": 250,
	}
	if len(list) != len(want) {
		t.Errorf("got %+v", list)
	}
	for _, r := range list {
		if r.Median != want[r.Of] {
			t.Errorf("%s is %v, want %v", r.Of, r.Median, want[r.Of])
		}
	}
}

func TestPeerGoals(t *testing.T) {
	t.Parallel()
	r := &peerResult{}
	request := func(what, system string, conns, n int, f figures) {
		r.Requests = append(r.Requests, cell{
			What: what, Store: sqliteStore, System: system, Conns: conns, Responses: n, Round: 1, figures: f,
		})
	}
	request(createWhat, groupSystem, 64, 0, figures{PerSecond: 20_000, ServerMicros: 51, P99: 9, PeakMB: 30})
	request(createWhat, pocketSystem, 64, 0, figures{PerSecond: 5_100, PeakMB: 200})
	request(createWhat, fullSystem, 64, 0, figures{PerSecond: 3_000})
	request(pageWhat, groupSystem, 1, 200, figures{P50: 0.5})
	request(pageWhat, createdSystem, 1, 200, figures{P50: 60})
	request(pageWhat, offsetSystem, 1, 200, figures{P50: 1})
	for system, rate := range map[string]float64{groupSystem: 700, pocketSystem: 200} {
		r.Files = append(r.Files, fileCell{
			What: formWhat, Place: diskPlace, System: system, Round: 1, fileFigures: fileFigures{PerSecond: rate, GrownUpMB: 32},
		})
	}
	r.Starts = []startCell{{System: groupSystem, Ready: 40, Round: 1}, {System: pocketSystem, Ready: 400, Round: 1}}
	o := &options{Only: peerParts(), PeerConns: []int{64}, PeerFill: 200}
	want := map[string]string{
		"create, 64 connections: ≥ 4 × PocketBase":                  "MISSED",
		"create, 64 connections: ≥ 6 × PocketBase FULL":             "reached",
		"create, 64 connections: server CPU ≤ 50 µs":                "MISSED",
		"create, 64 connections: p99 ≤ 10 ms":                       "reached",
		"create: peak memory ≤ 41.9 MB (40 MiB)":                    "reached",
		"far page, formsvc: ≥ 100 × PocketBase, by created":         "reached",
		"far page, formsvc, offset: ≥ 100 × PocketBase, by created": "MISSED",
		"upload as a form of a large file: ≥ 3 × PocketBase":        "reached",
		"upload as a form of a large file: memory grows by < 32 MB": "MISSED",
		"start: ready after ≤ 50 ms":                                "reached",
	}
	for _, g := range peerGoals(o, r) {
		if verdict, ok := want[g.Text]; ok != g.Measured || (ok && verdict != g.verdict()) {
			t.Errorf("%s: measured is %v, the verdict %s", g.Text, g.Measured, g.verdict())
		}
		delete(want, g.Text)
	}
	if len(want) > 0 {
		t.Errorf("no goals %v", want)
	}
}
