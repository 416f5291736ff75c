package torture_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to check files of SQLite with
)

// nodeFlags are retries that never exhaust while a receiver rejects only first attempts, and a short lease.
var nodeFlags = []string{
	"--webhook-allow", "127.0.0.0/8", "--quota", "0", "--webhook-retries", "200ms,500ms,1s,2s,5s,5s,5s,5s",
	"--webhook-timeout", "3s", "--webhook-lease", "8s",
}

// A world is what faults happen to: a database with its nodes, clients that write, and a receiver. Its methods are for the
// goroutine of the test, except targets.
type world struct {
	setup
	load
	t        testing.TB
	receiver *receiver
	campaign string // its path
	began    time.Time

	mu    sync.Mutex
	nodes []*process // nil where none runs
}

// newWorld creates a world with a campaign, a key and a webhook for all events. No node runs yet.
func newWorld(t testing.TB, nodes int, s setup) *world {
	t.Helper()
	s.flags, s.data = nodeFlags, cmp.Or(s.data, t.TempDir())
	w := &world{setup: s, t: t, nodes: make([]*process, nodes), receiver: newReceiver(t)}
	w.receiver.refuse = true
	w.start(0)
	w.client = newClient(t, w.nodes[0].firstKey(t))
	w.campaign = "/v1/campaigns/" + w.client.made(t, w.nodes[0].url+"/v1/campaigns", `{"title":"Torture"}`)
	w.command(t, "webhooks", "create", "--url", w.receiver.url, "--events", "all", "--secret", secret, "--webhook-allow", "127.0.0.0/8")
	w.nodes[0].terminate(t)
	w.put(0, nil)
	w.ledger, w.responses, w.load.targets = &ledger{entries: make(map[string]*entry)}, w.campaign+"/responses", w.targets
	return w
}

// begin starts the load.
func (w *world) begin(perSecond float64) {
	w.began = time.Now()
	w.load.start(perSecond)
}

// start starts node i and waits until it serves.
func (w *world) start(i int) {
	w.t.Helper()
	w.put(i, w.setup.start(w.t))
}

// startAll starts all nodes that don't run.
func (w *world) startAll() {
	w.t.Helper()
	for i := range w.nodes {
		if w.nodes[i] == nil {
			w.start(i)
		}
	}
}

func (w *world) put(i int, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i] = p
}

// kill kills node i.
func (w *world) kill(i int) {
	w.nodes[i].kill()
	w.put(i, nil)
}

// pause stops node i for a time and resumes it. It gets no new requests meanwhile, as behind a load balancer. meanwhile is
// called once it has stopped.
func (w *world) pause(i int, d time.Duration, meanwhile func()) {
	p := w.nodes[i]
	w.put(i, nil)
	p.signal(syscall.SIGSTOP)
	time.Sleep(20 * time.Millisecond) // all its threads have stopped
	meanwhile()
	time.Sleep(d)
	p.signal(syscall.SIGCONT)
	w.put(i, p)
}

// more waits until n more writes are acknowledged.
func (w *world) more(n int) {
	w.t.Helper()
	before := w.count()
	waitFor(w.t, "writes are acknowledged", func() bool { return w.count() >= before+n })
}

// targets returns the addresses of running nodes. It is safe for concurrent use.
func (w *world) targets() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.nodes {
		if p != nil && !p.ended() {
			list = append(list, p.url)
		}
	}
	return list
}

// check ends the load, starts the nodes that don't run, waits until all events have arrived, and compares all records. It
// fails the test for every fault.
func (w *world) check() verdict {
	w.t.Helper()
	w.load.stop()
	took := time.Since(w.began)
	w.startAll()
	v, s := w.settled()
	v.faults = append(v.faults, w.receiver.faults()...)
	w.command(w.t, "files", "verify")
	for i, p := range w.nodes {
		if p.logged(finalPattern) != "" {
			v.fault("a delivery failed for good, to a receiver that rejects first attempts only")
		}
		p.terminate(w.t)
		w.put(i, nil)
	}
	if path, ok := strings.CutPrefix(w.dsn, "sqlite:"); ok {
		if result := integrity(w.t, path); result != "ok" {
			v.fault("the database is damaged: %s", result)
		}
	}
	taken, repeated := w.receiver.counts()
	w.t.Logf("%d writes acknowledged in %v, failed %v, of %d with an unknown outcome %d had happened; %d responses, %d records, "+
		"%d events, %d deliveries, %d of them repeated; longest gap %v; %d faults", w.acked, took.Round(time.Second), w.failed, v.unclear,
		v.happened, len(s.responses), len(s.records), len(s.events), taken, repeated, w.gap.Round(time.Millisecond), len(v.faults))
	if w.acked == 0 || len(s.events) == 0 {
		w.t.Error("INVALID: nothing was written, which proves nothing")
	}
	for _, fault := range v.faults[:min(20, len(v.faults))] {
		w.t.Error(fault)
	}
	return v
}

// settled compares what is stored with all other records, until every event is in the feed and has arrived, or nothing
// changes for a long time.
func (w *world) settled() (v verdict, s *stored) {
	w.t.Helper()
	ctx := context.Background()
	waitFor(w.t, "all records can be read", func() bool { // a node may still have to find out that a connection is dead
		var err error
		if s, err = readStored(ctx, w.client, w.targets()[0], w.campaign, w.ledger); err != nil {
			w.t.Log(err)
		}
		return err == nil
	})
	v = compare(w.ledger, s, w.receiver.arrived())
	for progress := time.Now(); v.pending > 0 && time.Since(progress) < patience; time.Sleep(100 * time.Millisecond) {
		// The feed waits for every transaction that was open on the server, also for those of other tests.
		if events, err := list[json.RawMessage](ctx, w.client, w.targets()[0]+"/v1/events"); err == nil {
			s.events = events
		}
		before := v.pending
		if v = compare(w.ledger, s, w.receiver.arrived()); v.pending != before {
			progress = time.Now()
		}
	}
	return v, s
}

// integrity checks a copy of a SQLite file: the original may be on a file system that this process serves.
func integrity(t testing.TB, path string) (result string) {
	to := filepath.Join(t.TempDir(), "copy")
	for _, suffix := range []string{"", "-wal"} {
		if b, err := os.ReadFile(path + suffix); err == nil { // without a write-ahead log, everything is in the file
			_ = os.WriteFile(to+suffix, b, 0o600)
		}
	}
	db, err := sql.Open("sqlite", "file:"+to+"?mode=rw")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&result); err != nil {
		return err.Error()
	}
	return result
}
