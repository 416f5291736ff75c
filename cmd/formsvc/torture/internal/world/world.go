// Package world sets up the target of faults: nodes on a database and a blob store, writing clients, a webhook receiver,
// and the checks afterwards.
package world

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to check files of SQLite with

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/check"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/service"
)

// The flags of all nodes: retries that never exhaust while a receiver rejects only first attempts, and a short lease.
var flags = []string{
	"--webhook-allow", "127.0.0.0/8", "--quota", "0", "--webhook-retries", "200ms,500ms,1s,2s,5s,5s,5s,5s",
	"--webhook-timeout", "3s", "--webhook-lease", "8s",
}

// Quiet is how long to wait for events after the last arrival: many leases, even on a busy machine. Only a failing test
// takes as long.
const Quiet = 2 * time.Minute

// Options configures a world.
type Options struct {
	Program service.Program
	DSN     string   // for --db
	Data    string   // for --data. Defaults to a new directory
	Blobs   string   // for --blobs. Defaults to files below Data
	Env     []string // of all nodes
	Flags   []string // of all nodes, after those of the package
	Nodes   int      // Defaults to one
}

// A World is one database with its nodes, clients and receiver. Its methods are for the goroutine of the test, except
// Targets.
type World struct {
	Inbox    *inbox.Inbox
	Ledger   *ledger.Ledger
	Client   *api.Client
	Campaign string
	Webhook  string
	Setup    service.Setup

	t        testing.TB
	o        Options
	mu       sync.Mutex
	nodes    []*service.Process // nil where none runs
	urls     []string
	loads    int
	wrote    load.Result // by all loads together; Gap is the longest
	took     time.Duration
	slowest  time.Duration // start of a node until it serves
	restarts int
}

// New creates a world with a campaign, a key and a webhook for all events. No node runs.
func New(t testing.TB, o Options) *World {
	t.Helper()
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	w := &World{t: t, o: o, nodes: make([]*service.Process, o.Nodes), urls: make([]string, o.Nodes)}
	w.Setup = service.Setup{
		Program: o.Program, DSN: o.DSN, Data: o.Data, Blobs: o.Blobs, Env: o.Env, Flags: slices.Concat(flags, o.Flags),
	}
	w.Inbox = inbox.New(t)
	w.Inbox.Delay, w.Inbox.Refuse = 5*time.Millisecond, true
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	var err error
	if w.Ledger, err = ledger.New(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Ledger.Close() })
	first := w.Start(0)
	w.Client = api.New(first.FirstKey(t))
	t.Cleanup(w.Client.Close)
	w.Campaign = w.newCampaign(first.URL)
	w.Webhook = w.newWebhook()
	first.Terminate(t)
	w.forget(0)
	w.slowest, w.restarts = 0, 0 // this one had to make the database
	return w
}

func (w *World) newCampaign(url string) string {
	w.t.Helper()
	a, err := w.Client.Do(w.t.Context(), api.Request{
		Method: http.MethodPost, URL: url + "/v1/campaigns", Body: []byte(`{"title":"Torture"}`),
	})
	if err != nil || a.Status != http.StatusCreated {
		w.t.Fatalf("create a campaign: status %d, %v: %s", a.Status, err, a.Body)
	}
	return a.Created()
}

func (w *World) newWebhook() string {
	w.t.Helper()
	out := service.Command(w.t, &w.Setup, "webhooks", "create", "--url", w.Inbox.URL, "--events", "all",
		"--secret", inbox.Secret, "--json", "--webhook-allow", "127.0.0.0/8")
	var v struct {
		UUID string `json:"uuid"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.t.Fatalf("webhooks create --json: %v", err)
	}
	return v.UUID
}

// Start starts node i and waits until it serves.
func (w *World) Start(i int) *service.Process {
	w.t.Helper()
	begin := time.Now()
	p := service.Start(w.t, &w.Setup)
	w.slowest = max(w.slowest, time.Since(begin))
	w.restarts++
	w.put(i, p)
	return p
}

// StartAll starts all nodes that don't run.
func (w *World) StartAll() {
	w.t.Helper()
	for i := range w.nodes {
		if w.nodes[i] == nil {
			w.Start(i)
		}
	}
}

// Adopt uses a process that the test launched as node i. It must serve.
func (w *World) Adopt(i int, p *service.Process) { w.put(i, p) }

func (w *World) put(i int, p *service.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i], w.urls[i] = p, p.URL
}

func (w *World) forget(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i], w.urls[i] = nil, ""
}

// Node returns node i, or nil.
func (w *World) Node(i int) *service.Process { return w.nodes[i] }

// Kill kills node i.
func (w *World) Kill(i int) {
	p := w.nodes[i]
	p.Kill()
	w.forget(i)
}

// KillStarting starts a process and kills it after a time, whether it serves by then or not.
func (w *World) KillStarting(i int, after time.Duration) {
	w.t.Helper()
	p := service.Launch(w.t, &w.Setup)
	time.Sleep(after)
	w.Lose(i, p)
}

// Lose kills a process that was or should become node i.
func (w *World) Lose(i int, p *service.Process) {
	p.Kill()
	w.forget(i)
}

// Terminate shuts node i down gracefully.
func (w *World) Terminate(i int) {
	w.t.Helper()
	p := w.nodes[i]
	p.Terminate(w.t)
	w.forget(i)
}

// Pause stops node i for a time and resumes it. It gets no new requests meanwhile, as behind a load balancer. meanwhile is
// called once it has stopped.
func (w *World) Pause(i int, d time.Duration, meanwhile func()) {
	w.t.Helper()
	p := w.nodes[i]
	w.forget(i)
	p.Signal(w.t, syscall.SIGSTOP)
	time.Sleep(20 * time.Millisecond) // all its threads have stopped
	meanwhile()
	time.Sleep(d)
	p.Signal(w.t, syscall.SIGCONT)
	w.put(i, p)
}

// Targets returns the addresses of running nodes. It is safe for concurrent use.
func (w *World) Targets() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for i, p := range w.nodes {
		if p != nil && !p.Ended() {
			list = append(list, w.urls[i])
		}
	}
	return list
}

// Load starts clients on all nodes. change may be nil.
func (w *World) Load(change func(*load.Options)) *load.Load {
	w.loads++
	o := load.Options{
		Client: w.Client, Ledger: w.Ledger, Campaign: w.Campaign, Targets: w.Targets,
		Name: fmt.Sprintf("%d", w.loads),
	}
	if change != nil {
		change(&o)
	}
	return load.Start(o)
}

// Stop ends a load and adds its result to the world's.
func (w *World) Stop(l *load.Load) load.Result {
	r := l.Stop()
	w.took += r.Took
	w.wrote.Acked += r.Acked
	w.wrote.Failed += r.Failed
	w.wrote.Gap = max(w.wrote.Gap, r.Gap)
	if w.wrote.Why == nil {
		w.wrote.Why = make(map[string]int)
	}
	for reason, n := range r.Why {
		w.wrote.Why[reason] += n
	}
	return r
}

// A Summary is the result of a run.
type Summary struct {
	check.Verdict

	Acked, Failed    int
	Why              map[string]int // what failed, by reason
	PerSecond        float64        // acknowledged writes, while there was load
	Gap              time.Duration
	Delivered, Again int // deliveries, and how many of them had arrived before
	SlowestStart     time.Duration
	Waited           time.Duration // for the last events
	Starts           int
	FailedForGood    int
}

// Check starts the nodes that don't run, waits until all events have arrived, and compares all records. It fails the test
// for every fault.
func (w *World) Check() Summary {
	w.t.Helper()
	w.StartAll()
	s := Summary{Acked: w.wrote.Acked, Failed: w.wrote.Failed, Why: w.wrote.Why, Gap: w.wrote.Gap, SlowestStart: w.slowest, Starts: w.restarts}
	if w.took > 0 {
		s.PerSecond = float64(s.Acked) / w.took.Seconds()
	}
	begin := time.Now()
	s.Verdict = w.settled()
	s.Waited = time.Since(begin)
	s.Faults = append(s.Faults, w.Inbox.Faults()...)
	s.Delivered, s.Again = w.Inbox.Count()
	w.checkStores(&s)
	for i, fault := range s.Faults {
		if i == 20 {
			w.t.Errorf("… and %d more", len(s.Faults)-i)
			break
		}
		w.t.Error(fault)
	}
	return s
}

// settled compares the stored data with all other records, until every event is in the feed and has arrived, or nothing
// changes for a long time.
func (w *World) settled() check.Verdict {
	w.t.Helper()
	ctx := context.Background()
	stored, err := check.Read(ctx, w.Client, w.Targets()[0], w.Campaign, w.Ledger)
	for deadline := time.Now().Add(3 * time.Minute); err != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("read what is stored: %v", err)
		}
		// A node may still have to find out that a connection is dead.
		stored, err = check.Read(ctx, w.Client, w.Targets()[0], w.Campaign, w.Ledger)
	}
	v := check.Compare(w.Ledger, stored, w.Inbox.Arrived())
	for progress := time.Now(); v.Unlisted+v.Undelivered > 0 && time.Since(progress) < Quiet; time.Sleep(100 * time.Millisecond) {
		before := v.Unlisted + v.Undelivered
		if v.Unlisted > 0 {
			// The feed waits for every transaction that was open on the server, also
			// for those of other tests.
			if events, err := check.ReadEvents(ctx, w.Client, w.Targets()[0]); err == nil {
				stored.Events = events
			}
		}
		if v = check.Compare(w.Ledger, stored, w.Inbox.Arrived()); v.Unlisted+v.Undelivered != before {
			progress = time.Now()
		}
	}
	return v
}

// checkStores verifies the files with the binary, stops the nodes and checks the database.
func (w *World) checkStores(s *Summary) {
	w.t.Helper()
	if out, err := service.TryCommand(context.Background(), &w.Setup, "files", "verify"); err != nil {
		s.Faults = append(s.Faults, fmt.Sprintf("files verify: %v\n%s", err, out))
	}
	for i, p := range w.nodes {
		s.FailedForGood += strings.Count(p.Log(), "webhook delivery failed permanently")
		w.Terminate(i)
	}
	path, ok := strings.CutPrefix(w.Setup.DSN, "sqlite:")
	if !ok {
		return
	}
	if verdict := w.integrity(path); verdict != "ok" {
		s.Faults = append(s.Faults, "the database is damaged: "+verdict)
	}
}

// integrity checks a copy of a SQLite file: the original may be on a file system that this process serves.
func (w *World) integrity(path string) (verdict string) {
	dir := w.t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "copy"+suffix), b, 0o600)
		} else if suffix != "" && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err.Error()
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "copy"))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&verdict); err != nil {
		return err.Error()
	}
	return verdict
}

// Name returns a unique name.
func Name() string { return strings.ToLower(rand.Text()[:12]) }
