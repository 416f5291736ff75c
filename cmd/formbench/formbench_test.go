package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// TestMain lets the test binary be the server that a bench starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == serveCommand || os.Args[1] == workCommand) {
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	// With the race detector every program waits a second before it ends.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// benchmark runs a short measurement and returns what it wrote.
func benchmark(t *testing.T, args ...string) (table string, r result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.json")
	args = append([]string{"-duration", "150ms", "-warmup", "20ms", "-large", "1500", "-fill", "300",
		"-dir", t.TempDir(), "-json", file}, args...)
	var out, log bytes.Buffer
	if status := run(t.Context(), args, streams{nil, &out, &log}); status != 0 {
		t.Fatalf("exit status %d\n%s\n%s", status, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cells {
		if c.Errors != 0 || c.P99 < c.P50 || c.Max < c.P99 || c.PeakMB <= 0 {
			t.Errorf("implausible cell %+v", c)
		}
	}
	return out.String(), r
}

// hasRow reports whether a line of the table begins with these columns.
func hasRow(table string, columns ...any) bool {
	words := make([]string, len(columns))
	for i, c := range columns {
		words[i] = regexp.QuoteMeta(fmt.Sprint(c))
	}
	return regexp.MustCompile(`(?m)^\s*` + strings.Join(words, `\s+`) + `\s`).MatchString(table)
}

func TestEveryCell(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "2", "-conns", "1,64", "-read-conns", "4",
		"-only", "create,read,depth")
	for _, conns := range []int{1, 64} {
		for _, system := range allSystems() {
			if !hasRow(table, createWhat, 0, conns, system) {
				t.Errorf("no row for create, %d connections, %s", conns, system)
			}
		}
	}
	for _, system := range []string{ceilingSystem, groupSystem} {
		for _, what := range []string{getWhat, listWhat} {
			if !hasRow(table, what, 300, 4, system) {
				t.Errorf("no row for %s, %s", what, system)
			}
		}
	}
	for _, what := range []string{firstWhat, deepWhat} {
		for _, n := range []int{smallCampaign, 1500} {
			if !hasRow(table, what, n, 1, groupSystem) {
				t.Errorf("no row for %s of %d", what, n)
			}
		}
	}
	if want := 2 * (2*3 + 2*2 + 2*2); len(r.Cells) != want {
		t.Errorf("got %d cells, want %d", len(r.Cells), want)
	}
	if want := 2*2 + 2 + 2; len(r.Ratios) != want {
		t.Errorf("got %d ratios, want %d", len(r.Ratios), want)
	}
	for _, x := range r.Ratios {
		if len(x.Rounds) == 0 || x.Lowest > x.Median || x.Median > x.Highest {
			t.Errorf("implausible ratio %+v", x)
		}
	}
	for _, g := range r.Goals {
		if g.Measured != (g.Store == sqliteStore) {
			t.Errorf("goal %q of %s: measured is %v", g.Text, g.Store, g.Measured)
		}
	}
	if strings.Count(table, "reached")+strings.Count(table, "MISSED") < 9 {
		t.Errorf("goals are missing in\n%s", table)
	}
}

func TestPostgres(t *testing.T) {
	postgrestest.DSN(t) // skips where there is none
	_, r := benchmark(t, "-stores", "postgres", "-rounds", "1", "-conns", "8", "-read-conns", "8",
		"-only", "create,read,depth")
	if want := 3 + 2*2 + 2*2; len(r.Cells) != want {
		t.Errorf("got %d cells, want %d", len(r.Cells), want)
	}
}

func TestWithoutPostgres(t *testing.T) {
	t.Setenv(postgresEnv, "")
	t.Setenv("CI", "")
	table, _ := benchmark(t, "-stores", "sqlite,postgres", "-rounds", "1", "-only", "create", "-conns", "1")
	if !strings.Contains(table, "SKIPPED: Postgres") {
		t.Errorf("the skip is not loud:\n%s", table)
	}
	t.Setenv("CI", "true")
	var log bytes.Buffer
	if status := run(t.Context(), nil, streams{nil, io.Discard, &log}); status != 1 || !strings.Contains(log.String(), postgresEnv) {
		t.Errorf("in CI: exit status %d, %s", status, &log)
	}
}

// TestSameBytes makes sure that the ceiling answers with as much as the API,
// and with the same members.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	const n = 300
	ctx := t.Context()
	db, err := newDatabase(ctx, sqliteStore, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := db.account(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if mine, err = db.withResponses(ctx, mine, 0, n); err != nil {
		t.Fatal(err)
	}
	theirs := inventedWorld()
	api := serveHere(t, serverConfig{System: groupSystem, DSN: db.dsn})
	ceiling := serveHere(t, serverConfig{System: ceilingSystem, Responses: n})

	reads := []struct{ mine, theirs workload }{{mine.gets(n), theirs.gets(n)}, {mine.list(), theirs.list()}}
	for _, read := range reads {
		for i := range read.mine.requests {
			got, want := answer(t, ceiling, read.theirs, i), answer(t, api, read.mine, i)
			if same := scrubbed(got) == scrubbed(want); !same || len(got) != len(want) {
				t.Fatalf("the ceiling answers\n%s\nthe API\n%s", got, want)
			}
		}
	}
	create, err := mine.creates()
	if err != nil {
		t.Fatal(err)
	}
	if size := bytes.Index(create.requests[0], []byte("\r\n\r\n")); len(create.requests[0])-size-4 < 450 {
		t.Errorf("a body of %d bytes is too small to be realistic", len(create.requests[0])-size-4)
	}
	for i := range create.requests {
		got, want := answer(t, ceiling, create, i), answer(t, api, create, i)
		if scrubbed(got) != scrubbed(want) || len(got) != len(want) {
			t.Fatalf("the ceiling answers\n%s\nthe API\n%s", got, want)
		}
	}
}

func serveHere(t *testing.T, cfg serverConfig) (addr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := startServer(t.Context(), self, cfg, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.stop() })
	return srv.addr
}

func answer(t *testing.T, addr string, w workload, i int) string {
	t.Helper()
	body, err := ask(t.Context(), addr, w.requests[i], w.status)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// scrubbed replaces what is made anew in every run, but not its length.
func scrubbed(body string) string {
	for _, member := range []string{"uuid", "reference", "createdAt", "updatedAt", "campaignUuid", "nextCursor"} {
		body = regexp.MustCompile(`"`+member+`":"[^"]*"`).ReplaceAllString(body, `"`+member+`":""`)
	}
	return body
}

func TestFailureIsReported(t *testing.T) {
	t.Parallel()
	addr := serveHere(t, serverConfig{System: ceilingSystem, Responses: minFill})
	w := inventedWorld()
	if _, err := ask(t.Context(), addr, w.request("GET", "/v1/nothing", nil), 200); err == nil ||
		!strings.Contains(err.Error(), "answered 404") {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-conns", "0"}, {"-conns", "x"}, {"-stores", "oracle"}, {"-only", "nothing"}, {"-rounds", "0"},
		{"-duration", "0s"}, {"-n", "10"}, {"-callers", "0"}, {"-latency", "0s"}, {"-idle", "0s"}, {"-backlog", "0"},
		{"-file-count", "0"}, {"-file-size", "0"}, {"-file-size", "1073741825"}, {"-file-large", "0"}, {"-file-burst", "0"},
		{"-fill", "1"}, {"-large", "10"}, {"-unknown"}, {"argument"}, {"-systems", ""},
	} {
		if status := run(t.Context(), args, streams{nil, io.Discard, io.Discard}); status != 2 {
			t.Errorf("%q: exit status %d, want 2", args, status)
		}
	}
	o, err := parseOptions([]string{"-systems", "each,ceiling", "-conns", "2, 4"}, io.Discard)
	if err != nil || !slices.Equal(o.Systems, []string{ceilingSystem, eachSystem}) || !slices.Equal(o.Conns, []int{2, 4}) {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	table, r := benchmark(t, "-stores", "sqlite", "-rounds", "1", "-conns", "4", "-only", "checks")
	for _, system := range []string{groupSystem, quotaSystem, keyedSystem} {
		if !hasRow(table, checksWhat, 0, 4, system) {
			t.Errorf("no row for %s", system)
		}
	}
	if len(r.Ratios) != 2 {
		t.Errorf("got %d ratios, want 2", len(r.Ratios))
	}
}

// TestFreshKeys makes sure that no two requests have the same idempotency key: a
// replay costs less than what is to be measured.
func TestFreshKeys(t *testing.T) {
	t.Parallel()
	w := inventedWorld()
	load, err := w.keyedCreates()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	var buf []byte
	for i := range 500 {
		for conn := range 3 {
			buf = load.fresh(buf, i%len(load.requests), conn, i)
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(buf)))
			if err != nil {
				t.Fatal(err)
			}
			key := r.Header.Get("Idempotency-Key")
			if len(key) != len(sampleKey) || seen[key] {
				t.Fatalf("key %q of request %d on connection %d", key, i, conn)
			}
			seen[key] = true
		}
	}
}
