package peers

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// TestPocketLosses makes sure that a record that was acknowledged and is not there
// is noticed, and one that nobody acknowledged.
func TestPocketLosses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &runner{Bench: &bench.Bench{Log: io.Discard}}
	p.Dir, p.PeerProgram = t.TempDir(), benchtest.Peers(t)
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
	if err := files.Holds(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "storage"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "storage", "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.Holds(ctx, 0); err == nil {
		t.Error("a file without a record is not noticed")
	}
}

// TestPocketbase makes sure that the peer does what it is compared for.
func TestPocketbase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &runner{Bench: &bench.Bench{Log: os.Stderr}}
	p.Dir, p.PeerProgram = t.TempDir(), benchtest.Peers(t)
	s, err := p.newPocket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := p.startPocket(ctx, &requests.Cell{System: BatchSystem}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		collection, token string
		status            int
	}{
		{pocketbase.Responses, "", http.StatusOK},
		{pocketbase.Private, srv.Token, http.StatusOK},
		{pocketbase.Private, "", http.StatusForbidden},
		{pocketbase.Private, srv.Token + "x", http.StatusForbidden},
	} {
		work, err := createPocket(ctx, c.collection, c.token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loadgen.Ask(ctx, srv.Addr, work.Requests[0], c.status); err != nil {
			t.Errorf("%s with the token %.10q: %v", c.collection, c.token, err)
		}
	}
	batch, err := batchPocket(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := loadgen.Ask(ctx, srv.Addr, batch.Requests[0], batch.Status)
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ Status int }
	if err := json.Unmarshal(body, &parts); err != nil || len(parts) != 3 ||
		slices.ContainsFunc(parts, func(p struct{ Status int }) bool { return p.Status != http.StatusOK }) {
		t.Errorf("the batch is answered with %s", body)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.holds(ctx, 1, pocketbase.Events, pocketbase.Deliveries, pocketbase.Private); err != nil {
		t.Error(err)
	}
	if err := s.holds(ctx, 2, pocketbase.Responses); err != nil {
		t.Error(err)
	}
}

func TestPeerRatios(t *testing.T) {
	t.Parallel()
	made := func(what, system string, round int, f requests.Figures) requests.Cell {
		return requests.Cell{What: what, Store: bench.SQLiteStore, System: system, Conns: 1, Round: round, Figures: f}
	}
	list := ratios([]requests.Cell{
		made(requests.CreateWhat, bench.APISystem, 1, requests.Figures{PerSecond: 40, ServerMicros: 10}),
		made(requests.CreateWhat, PocketSystem, 1, requests.Figures{PerSecond: 10, ServerMicros: 50}),
		made(requests.CreateWhat, PocketSystem, 2, requests.Figures{PerSecond: 5, ServerMicros: 60}),
		made(requests.CreateWhat, bench.APISystem, 2, requests.Figures{PerSecond: 30, ServerMicros: 10}),
		made(pageWhat, offsetSystem, 1, requests.Figures{PerSecond: 7, P50: 2}),
		made(pageWhat, createdSystem, 1, requests.Figures{PerSecond: 7, P50: 500}),
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
	r := &Result{}
	request := func(what, system string, conns, n int, f requests.Figures) {
		r.Requests = append(r.Requests, requests.Cell{
			What: what, Store: bench.SQLiteStore, System: system, Conns: conns, Responses: n, Round: 1, Figures: f,
		})
	}
	request(requests.CreateWhat, bench.APISystem, 64, 0, requests.Figures{PerSecond: 20_000, ServerMicros: 51, P99: 9, PeakMB: 30})
	request(requests.CreateWhat, PocketSystem, 64, 0, requests.Figures{PerSecond: 5_100, PeakMB: 200})
	request(requests.CreateWhat, FullSystem, 64, 0, requests.Figures{PerSecond: 3_000})
	request(pageWhat, bench.APISystem, 1, 200, requests.Figures{P50: 0.5})
	request(pageWhat, createdSystem, 1, 200, requests.Figures{P50: 60})
	request(pageWhat, offsetSystem, 1, 200, requests.Figures{P50: 1})
	for system, rate := range map[string]float64{bench.APISystem: 700, PocketSystem: 200} {
		r.Files = append(r.Files, files.Cell{
			What: files.FormWhat, Place: files.DiskPlace, System: system, Round: 1, Figures: files.Figures{PerSecond: rate, GrownUpMB: 32},
		})
	}
	r.Starts = []StartCell{{System: bench.APISystem, Ready: 40, Round: 1}, {System: PocketSystem, Ready: 400, Round: 1}}
	o := &bench.Options{Only: bench.PeerParts(), PeerConns: []int{64}, PeerFill: 200}
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
	for _, g := range Goals(o, r) {
		if verdict, ok := want[g.Text]; ok != g.Measured || (ok && verdict != g.Verdict()) {
			t.Errorf("%s: measured is %v, the verdict %s", g.Text, g.Measured, g.Verdict())
		}
		delete(want, g.Text)
	}
	if len(want) > 0 {
		t.Errorf("no goals %v", want)
	}
}
