package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/formsvc/toolkit/webhook"
)

// peersEnv names the program of the package peers. Without it, the tests beside PocketBase and River are skipped.
const peersEnv = "FORMSVC_TEST_PEERS"

// program builds formsvc.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "formsvc")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/formsvc")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// measured runs formbench briefly and returns its results, read as benchstat does, by name.
func measured(t *testing.T, args ...string) map[string]*benchfmt.Result {
	t.Helper()
	var out, log bytes.Buffer
	args = append([]string{"-rounds", "1", "-time", "300ms", "-conns", "8", "-fill", "40", "-events", "300", "-file", "3000000", "-dir", t.TempDir()}, args...)
	if err := run(t.Context(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s%s", err, &log, &out)
	}
	results := make(map[string]*benchfmt.Result)
	reader := benchfmt.NewReader(&out, "results")
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			results[string(r.Name.Full())] = r.Clone()
			for _, unit := range []string{"sec/op", "server-cpu-sec/op"} {
				if v, ok := r.Value(unit); !ok || v < 0 || (v == 0 && unit == "sec/op") {
					t.Errorf("%s has %v %s", r.Name, v, unit)
				}
			}
			if v, ok := r.Value("rss-bytes"); !ok || v < 1<<20 {
				t.Errorf("%s has %v bytes of memory", r.Name, v)
			}
		case *benchfmt.SyntaxError:
			t.Errorf("benchstat can't read this: %v", r)
		}
	}
	return results
}

// has fails unless these are the names.
func has(t *testing.T, results map[string]*benchfmt.Result, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(results)); !slices.Equal(got, want) {
		t.Errorf("measured %q,\nwant %q", got, want)
	}
}

func TestTwoBuildsOnSQLite(t *testing.T) {
	path := program(t)
	results := measured(t, "-store", "sqlite", "-binary", "old="+path, "-binary", "new="+path)
	var want []string
	for _, system := range []string{"old", "new"} {
		for _, name := range []string{"Create%/conns=8/fill=40", "Keyed%/conns=8/fill=40", "Form%/conns=8/fill=40", "Get%/conns=8/fill=40", "List%/conns=8/fill=40", "Deliver%/conns=8", "Drain%/events=300", "Upload%/bytes=3000000", "Download%/bytes=3000000"} {
			want = append(want, strings.Replace(name, "%", "/sys="+system+"/store=sqlite", 1))
		}
	}
	has(t, results, want...)
}

func TestBesidePeers(t *testing.T) {
	peers := os.Getenv(peersEnv)
	if peers == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(peersEnv + " is not set")
		}
		t.Skip(peersEnv + " is not set: run \"make test-formbench\"")
	}
	path := program(t)
	results := measured(t, "-store", "sqlite", "-binary", path, "-peers", peers, "-only", "create,list,drain,files")
	has(t, results,
		"Create/sys=formsvc/store=sqlite/conns=8/fill=40", "Create/sys=pocketbase/store=sqlite/conns=8/fill=40",
		"Create/sys=pocketbase-full/store=sqlite/conns=8/fill=40",
		"List/sys=formsvc/store=sqlite/conns=8/fill=40", "List/sys=pocketbase/store=sqlite/conns=8/fill=40",
		"Drain/sys=formsvc/store=sqlite/events=300", "Drain/sys=river/store=sqlite/events=300",
		"Upload/sys=formsvc/store=sqlite/bytes=3000000", "Upload/sys=pocketbase/store=sqlite/bytes=3000000",
		"Download/sys=formsvc/store=sqlite/bytes=3000000", "Download/sys=pocketbase/store=sqlite/bytes=3000000")
	if os.Getenv(postgresEnv) == "" {
		t.Skip(postgresEnv + " is not set")
	}
	results = measured(t, "-store", "postgres", "-binary", path, "-peers", peers, "-only", "get,deliver,files")
	has(t, results, "Get/sys=formsvc/store=postgres/conns=8/fill=40",
		"Deliver/sys=formsvc/store=postgres/conns=8", "Deliver/sys=river/store=postgres/conns=8")
	if _, ok := results["Deliver/sys=river/store=postgres/conns=8"].Value("database-cpu-sec/op"); !ok {
		t.Error("the CPU time of Postgres is missing")
	}
}

func TestRejectsInvalidFlags(t *testing.T) {
	t.Setenv(postgresEnv, "")
	for _, args := range [][]string{
		{"-store", "oracle"}, {"-store", "postgres"}, {"-only", "nothing"}, {"-conns", "0"}, {"-fill", "0"}, {"extra"},
		{"-binary", "a=x", "-binary", "a=y"}, {"-binary", "a b=x"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	missing := []string{"-binary", filepath.Join(t.TempDir(), "missing"), "-dir", t.TempDir()}
	if err := run(t.Context(), missing, io.Discard, io.Discard); err == nil {
		t.Error("a missing binary was measured")
	}
}

// TestNoticesLostResponses acknowledges requests and lists one less.
func TestNoticesLostResponses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"total":41}`)
	}))
	defer server.Close()
	x := &target{process: &process{addr: server.Listener.Addr().String()}, path: "/", total: "total"}
	if err := x.check(t.Context(), 41, 0); err != nil {
		t.Error(err)
	}
	if err := x.check(t.Context(), 42, 0); err == nil || !strings.Contains(err.Error(), "acknowledged 42") {
		t.Errorf("got %v", err)
	}
}

func TestReceiver(t *testing.T) {
	r, err := receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := newTemplate([]byte(user))
	post := func(number int, key string) int {
		body := text.with(nil, number)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(webhook.SignatureHeader, webhook.Sign(key, body))
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return errorOr(t, resp.Body.Close(), resp.StatusCode)
	}
	release := r.hold()
	posted := make(chan int)
	go func() { posted <- post(7, secret) }()
	select {
	case status := <-posted:
		t.Fatalf("a held delivery was answered with %d", status)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if status := <-posted; status != 200 {
		t.Errorf("a released delivery was answered with %d", status)
	}
	for range 2 { // the second one is a repetition
		r.note(12345678)
		if status := post(12345678, secret); status != 200 {
			t.Errorf("answered %d", status)
		}
	}
	if _, err := r.await(t.Context(), 2); err != nil {
		t.Error(err)
	}
	if status := post(9, "another secret"); status != 400 {
		t.Errorf("a wrong signature was answered with %d", status)
	}
	if _, err := r.await(t.Context(), 2); err == nil {
		t.Error("a wrong signature goes unnoticed")
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

func errorOr(t *testing.T, err error, status int) int {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return status
}

// TestComparer compares a file in pieces with itself, and with one that differs at its end or is longer.
func TestComparer(t *testing.T) {
	file := content(10_000)
	same := comparer{file}
	for piece := range slices.Chunk(file, 999) {
		if _, err := same.Write(piece); err != nil {
			t.Error(err)
		}
	}
	if len(same.rest) > 0 {
		t.Errorf("%d bytes remain", len(same.rest))
	}
	other := append(slices.Clone(file[:9_999]), file[9_999]^1)
	for _, wrong := range [][]byte{other, append(file, 0)} {
		if _, err := (&comparer{file}).Write(wrong); err == nil {
			t.Error("a difference goes unnoticed")
		}
	}
}
