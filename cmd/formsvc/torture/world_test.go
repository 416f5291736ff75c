package torture_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to check files of SQLite with

	goclient "github.com/formsvc/toolkit/httpx/client"
)

// nodeFlags are retries that never exhaust while a receiver rejects only first attempts, and a short lease.
var nodeFlags = []string{
	"--webhook-allow", "127.0.0.0/8", "--quota", "0", "--webhook-retries", "200ms,500ms,1s,2s,5s,5s,5s,5s",
	"--webhook-timeout", "3s", "--webhook-lease", "8s", "--trusted-proxy", "127.0.0.0/8",
}

// A world is what faults happen to: a database with its nodes, clients that write, and a receiver. Its methods are for the
// goroutine of the test, except targets.
type world struct {
	setup
	load
	t        testing.TB
	receiver *receiver
	campaign string // its path

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
	w.campaign = "/v1/campaigns/" + must(w.client.api(w.nodes[0].url).Campaigns.Create(t.Context(), goclient.CampaignInput{Title: "Torture"})).UUID
	w.command(t, "webhooks", "create", "--url", w.receiver.url, "--events", "all", "--secret", secret, "--webhook-allow", "127.0.0.0/8")
	w.nodes[0].terminate(t)
	w.put(0, nil)
	w.ledger, w.responses, w.load.targets = &ledger{entries: make(map[string]*entry)}, w.campaign+"/responses", w.targets
	return w
}

// start starts node i and waits until it serves.
func (w *world) start(i int) {
	w.t.Helper()
	w.put(i, w.setup.start(w.t))
}

// startAll starts all nodes that don't run.
func (w *world) startAll() {
	w.t.Helper()
	for i, p := range w.nodes {
		if p == nil {
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

// more waits until n more writes are acknowledged.
func (w *world) more(n int64) {
	w.t.Helper()
	before := w.acked.Load()
	waitFor(w.t, "writes are acknowledged", func() bool { return w.acked.Load() >= before+n })
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
func (w *world) check() {
	w.t.Helper()
	w.stop()
	w.startAll()
	v, s := w.settled()
	w.command(w.t, "files", "verify")
	for i, p := range w.nodes {
		if p.logged(finalPattern) != "" {
			v.fault("a delivery failed for good, to a receiver that rejects first attempts only")
		}
		p.terminate(w.t)
		w.put(i, nil)
	}
	v.faults = append(v.faults, w.receiver.wrong...) // nothing more arrives
	if path, ok := strings.CutPrefix(w.dsn, "sqlite:"); ok {
		if result := integrity(w.t, path); result != "ok" {
			v.fault("the database is damaged: %s", result)
		}
	}
	w.t.Logf("%d writes acknowledged, failed %v; %d responses, %d records, %d events; %d faults",
		w.acked.Load(), w.failed, len(s.responses), len(s.records), len(s.events), len(v.faults))
	if w.acked.Load() == 0 || len(s.responses) == 0 || len(s.events) == 0 {
		w.t.Fatal("INVALID: nothing was written, which proves nothing")
	}
	lost := []stored{*s, *s}
	lost[0].count, lost[0].responses, lost[1].events = s.count-1, s.responses[1:], s.events[1:]
	for i := range lost {
		if c := compare(w.ledger, &lost[i], w.receiver.arrived()); len(c.faults) <= len(v.faults) {
			w.t.Error("INVALID: the checker does not notice a lost response or event")
		}
	}
	for _, fault := range v.faults[:min(20, len(v.faults))] {
		w.t.Error(fault)
	}
}

// settled compares what is stored with all other records, until every event is in the feed and has arrived, or nothing
// changes for a long time.
func (w *world) settled() (v verdict, s *stored) {
	w.t.Helper()
	ctx := context.Background()
	waitFor(w.t, "all records can be read", func() bool { // a node may still have to find out that a connection is dead
		var err error
		s, err = readStored(ctx, w.client, w.targets()[0], w.campaign, w.ledger)
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

// A setup says which data a binary has, and how it is started.
type setup struct {
	dsn, data string   // for --db and --data
	blobs     []string // --blobs with its value; nil for files below data
	env       []string // NAME=VALUE
	flags     []string // of serve
	under     []string // a program to run it under, such as strace with its flags
	tls       bool     // for a neighbourhood
}

// common are the flags of every command.
func (s *setup) common() []string {
	return append([]string{"--db", s.dsn, "--data", s.data}, s.blobs...)
}

// command runs a management command, which must succeed, and returns its standard output.
func (s *setup) command(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append(args, s.common()...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), s.env...), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("formsvc %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

// A process is a running "formsvc serve".
type process struct {
	url  string // without /v1, once it serves
	cmd  *exec.Cmd
	log  string        // path of its output
	done chan struct{} // closed when it has ended
}

// launch starts a process without waiting until it serves. It is killed when the test ends.
func (s *setup) launch(t testing.TB) *process {
	t.Helper()
	args := slices.Concat(s.under, []string{program, "serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, s.common(), s.flags)
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	log := must(os.Create(p.log))
	defer func() { _ = log.Close() }() // the process has its own
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), s.env...), log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it is killed with what it runs under
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start formsvc: %v", err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		p.kill()
		if p.logged(panicPattern) != "" {
			t.Errorf("formsvc panicked:\n%s", p.tail())
		}
	})
	return p
}

// start starts a process and waits until it serves.
func (s *setup) start(t testing.TB) *process {
	t.Helper()
	p := s.launch(t)
	if !p.await() {
		t.Fatalf("formsvc does not serve: %v\n%s", p.cmd.ProcessState, p.tail())
	}
	return p
}

var (
	servingPattern = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)
	keyPattern     = regexp.MustCompile(`\b(formsvc_[0-9A-Za-z]{49})\b`)
	panicPattern   = regexp.MustCompile(`"msg":"(panic)"`)
	finalPattern   = regexp.MustCompile(`"msg":"(webhook delivery failed permanently)"`)
	waitingPattern = regexp.MustCompile(`"msg":"(database unreachable; retrying)"`)
)

// logged returns the first group of the first match in the output, or "".
func (p *process) logged(pattern *regexp.Regexp) string {
	text, _ := os.ReadFile(p.log) // it is removed at the end of the test only
	if m := pattern.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// await waits until the process serves. It returns false if the process ends first.
func (p *process) await() bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !p.ended(); time.Sleep(2 * time.Millisecond) {
		if addr := p.logged(servingPattern); addr != "" {
			p.url = "http://" + addr
			return true
		}
	}
	return false
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill kills the process and waits until it has ended.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal to the process and the program that it runs under, unless they have ended.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// terminate sends SIGTERM and waits until the process has ended with status 0.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	waitFor(t, "formsvc ends after SIGTERM", p.ended)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("formsvc ended with status %d, want 0\n%s", code, p.tail())
	}
}

// firstKey returns the key that the first start on an empty database prints.
func (p *process) firstKey(t testing.TB) (key string) {
	t.Helper()
	waitFor(t, "formsvc prints a key", func() bool {
		key = p.logged(keyPattern)
		return key != ""
	})
	return key
}

// tail returns the last lines of the log that aren't routine.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.Contains(line, `"level":"INFO"`) })
	return strings.Join(lines[max(0, len(lines)-15):], "")
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
