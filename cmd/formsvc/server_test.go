package main_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A server is a running "formsvc serve".
type server struct {
	url  string // of the API, without /v1
	dsn  string
	out  output // what it printed
	log  output // what it logged, as JSON, one object a line
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// output is what a process writes. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var (
	keyPattern  = regexp.MustCompile(`\bformsvc_[0-9A-Za-z]{49}\b`)
	addrPattern = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)
)

// allowLoopback are the flags that allow webhooks to the receivers of tests.
var allowLoopback = []string{"--webhook-allow", "127.0.0.0/8", "--webhook-allow", "::1/128"}

// unlimited are the flags for any number of requests.
var unlimited = []string{"--quota", "0"}

// launch starts a server on the database with further flags and doesn't wait until it serves. It allows webhooks to this
// machine and any number of requests. It is killed when the test ends.
func launch(t testing.TB, dsn string, flags ...string) *server {
	t.Helper()
	return execute(t, dsn, nil, slices.Concat(allowLoopback, unlimited, flags)...)
}

// execute starts a server with only these flags and variables, and those for the database.
func execute(t testing.TB, dsn string, variables []string, flags ...string) *server {
	t.Helper()
	s := &server{dsn: dsn, done: make(chan struct{})}
	s.run(t, &s.log, variables, flags)
	return s
}

// run starts the server and writes its log to log.
func (s *server) run(t testing.TB, log io.Writer, variables, flags []string) {
	t.Helper()
	args := append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, on(t, s.dsn, flags)...)
	s.cmd = exec.Command(program(t), args...)
	s.cmd.Dir, s.cmd.Env = t.TempDir(), environment(variables...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, log
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start formsvc: %v", err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		s.kill()
		if strings.Contains(s.log.String(), "DATA RACE") || strings.Contains(s.log.String(), `"msg":"panic"`) {
			t.Errorf("formsvc raced or panicked:\n%s", s.log.String())
		} else if t.Failed() && strings.Count(s.log.String(), "\n") > 1 { // more than the first line
			t.Logf("the log of formsvc, process %d:\n%s", s.cmd.Process.Pid, tail(s.log.String(), 40))
		}
	})
}

// start starts a server and waits until it serves.
func start(t testing.TB, dsn string, flags ...string) *server {
	t.Helper()
	return launch(t, dsn, flags...).started(t)
}

// started waits until the server serves.
func (s *server) started(t testing.TB) *server {
	t.Helper()
	eventually(t, "formsvc serves", func() bool { return s.serving() || s.ended() })
	if !s.serving() {
		t.Fatalf("formsvc ended: %v\n%s", s.cmd.ProcessState, s.log.String())
	}
	return s
}

// serving reports whether the server has logged its address, and records it.
func (s *server) serving() bool {
	if s.url == "" {
		if m := addrPattern.FindStringSubmatch(s.log.String()); m != nil {
			s.url = "http://" + m[1]
		}
	}
	return s.url != ""
}

// ended reports whether the process has ended.
func (s *server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// firstKey returns the key that the first start on an empty database printed.
func (s *server) firstKey(t testing.TB) string {
	t.Helper()
	var key string
	eventually(t, "formsvc prints its first key", func() bool {
		key = keyPattern.FindString(s.out.String())
		return key != ""
	})
	return key
}

// kill kills the process and waits until it has ended.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // fails if it has ended already
	<-s.done
}

// terminate sends SIGTERM to the process.
func (s *server) terminate(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("SIGTERM: %v", err)
	}
}

// stopped waits until the process has ended, checks that its exit status is 0, and returns how long that took.
func (s *server) stopped(t testing.TB) time.Duration {
	t.Helper()
	took := eventually(t, "formsvc ends", s.ended)
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("formsvc ended with status %d (%v), want 0", code, s.cmd.ProcessState)
	}
	return took
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	list := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}

// A result is the result of a command.
type result struct {
	out, err string
	status   int
}

// An invocation is a command to run.
type invocation struct {
	args  []string
	env   []string // as NAME=VALUE
	stdin string
	dir   string // defaults to an empty one
}

// run runs a command to its end, whatever its status.
func (i invocation) run(t testing.TB) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), i.args...)
	if cmd.Dir = i.dir; i.dir == "" {
		cmd.Dir = t.TempDir()
	}
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment(i.env...), strings.NewReader(i.stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("formsvc %s: %v", strings.Join(i.args, " "), err)
	}
	return result{out: stdout.String(), err: stderr.String(), status: cmd.ProcessState.ExitCode()}
}

// on adds the flags for the database to args. Unless args has --data, all commands on one database share a data directory.
func on(t testing.TB, dsn string, args []string) []string {
	t.Helper()
	args = append(slices.Clone(args), "--db", dsn)
	if !slices.Contains(args, "--data") {
		args = append(args, "--data", dataDir(t, dsn))
	}
	return args
}

// dataDirs are the directories for --data, by data source name.
var dataDirs sync.Map

// dataDir returns the directory for --data of a database.
func dataDir(t testing.TB, dsn string) string {
	t.Helper()
	dir, err := buildDir()
	if err != nil {
		t.Fatal(err)
	}
	name, _ := dataDirs.LoadOrStore(dsn, filepath.Join(dir, "data-"+strings.ToLower(rand.Text())))
	return name.(string)
}

// attempt runs a management command on the database.
func attempt(t testing.TB, dsn string, args ...string) result {
	t.Helper()
	return invocation{args: on(t, dsn, args)}.run(t)
}

// manage runs a management command on the database, which must succeed, and
// returns what it printed on standard output.
func manage(t testing.TB, dsn string, args ...string) string {
	t.Helper()
	r := attempt(t, dsn, args...)
	if r.status != 0 {
		t.Fatalf("formsvc %s: status %d\n%s", strings.Join(args, " "), r.status, r.err)
	}
	return r.out
}

// A logged is a log line about a request.
type logged struct {
	Level, Msg, RequestID, Method, Route, Client, Protocol string
	Status                                                 int
	Bytes                                                  int64
	DurationMs                                             float64
}

// requests returns the log lines about requests.
func (s *server) requests(t testing.TB) (list []logged) {
	t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if !strings.HasSuffix(line, "\n") {
			break // the line is incomplete
		}
		var l logged
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Msg == "request" {
			list = append(list, l)
		}
	}
	return list
}
