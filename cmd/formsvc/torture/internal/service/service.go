// Package service runs the binary: it builds it once, starts it, sends it signals and reads its output.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
)

// patience limits every wait for something that should happen soon. Only a failing test takes as long.
const patience = 3 * time.Minute

// A Program is a build of the binary.
type Program struct {
	path string
}

// Build builds the binary of this checkout in dir, with the given build tags.
func Build(dir string, tags ...string) (Program, error) {
	p := Program{path: filepath.Join(dir, strings.Join(append([]string{"formsvc"}, tags...), "-"))}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", strings.Join(tags, ","), "-o", p.path, "./cmd/formsvc")
	cmd.Dir = filepath.Join("..", "..", "..") // of the tests: the root of the main module
	if out, err := cmd.CombinedOutput(); err != nil {
		return Program{}, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return p, nil
}

// Setup has the data of a binary, and how to start it.
type Setup struct {
	Program Program
	DSN     string   // for --db
	Data    string   // for --data; the same for all nodes of a database
	Blobs   string   // for --blobs; "" for files below Data
	Env     []string // NAME=VALUE
	Flags   []string // of serve
	Addr    string   // to listen on. Defaults to a free port of 127.0.0.1
	// Under is a program to run it under, such as strace with its flags. It must end when its child does.
	Under []string
}

// common are the flags of every command.
func (s *Setup) common() []string {
	args := []string{"--db", s.DSN, "--data", s.Data}
	if s.Blobs != "" {
		args = append(args, "--blobs", s.Blobs)
	}
	return args
}

func (s *Setup) environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORMSVC_") {
			env = append(env, v)
		}
	}
	return append(env, s.Env...)
}

// A Process is a running "formsvc serve".
type Process struct {
	URL string // without /v1, once it serves

	cmd  *exec.Cmd
	out  output
	log  output
	done chan struct{}
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

// Launch starts a process without waiting until it serves. It is killed when the test ends.
func Launch(t testing.TB, s *Setup) *Process {
	t.Helper()
	addr := s.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	args := slices.Concat(s.Under, []string{s.Program.path, "serve", "--addr", addr, "--log-format", "json"}, s.common(), s.Flags)
	p := &Process{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})} // our own binary
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = s.environment(), &p.out, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it is killed with what it runs under
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start formsvc: %v", err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		p.Kill()
		if log := p.log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, `"msg":"panic"`) {
			t.Errorf("formsvc raced or panicked:\n%s", log)
		} else if noise := notable(log); t.Failed() && noise != "" {
			t.Logf("the end of the log of process %d:\n%s", p.cmd.Process.Pid, tail(noise, 15))
		}
	})
	return p
}

// Start starts a process and waits until it serves.
func Start(t testing.TB, s *Setup) *Process {
	t.Helper()
	p := Launch(t, s)
	if !p.Await() {
		t.Fatalf("formsvc does not serve: %v\n%s", p.cmd.ProcessState, tail(p.log.String(), 40))
	}
	return p
}

var serving = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)

// Await waits until the process serves. It returns false if the process ends first.
func (p *Process) Await() bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if m := serving.FindStringSubmatch(p.log.String()); m != nil {
			p.URL = "http://" + m[1]
			return true
		}
		if p.Ended() {
			return false
		}
	}
	return false
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status returns the exit status of an ended process, and the signal that ended it, or 0.
func (p *Process) Status() (code int, signal syscall.Signal) {
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal()
	}
	return p.cmd.ProcessState.ExitCode(), 0
}

// PID returns the identifier of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process and waits until it has ended.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails when it is gone already
	<-p.done
}

// Signal sends a signal to the process and the program that it runs under.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
}

// Terminate sends SIGTERM, waits until the process has ended and checks that its status is 0.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("formsvc does not end %v after SIGTERM\n%s", patience, tail(p.log.String(), 40))
	}
	if code, signal := p.Status(); code != 0 {
		t.Errorf("formsvc ended with status %d (%v), want 0\n%s", code, signal, tail(p.log.String(), 10))
	}
}

// Log returns what the process has logged, as lines of JSON.
func (p *Process) Log() string { return p.log.String() }

var keyPattern = regexp.MustCompile(`\bformsvc_[0-9A-Za-z]{49}\b`)

// FirstKey returns the key that the first start on an empty database prints.
func (p *Process) FirstKey(t testing.TB) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if key := keyPattern.FindString(p.out.String()); key != "" {
			return key
		}
	}
	t.Fatalf("formsvc printed no key:\n%s", p.out.String())
	return ""
}

// Command runs a management command, which must succeed, and returns what it
// printed on standard output.
func Command(t testing.TB, s *Setup, args ...string) string {
	t.Helper()
	out, err := TryCommand(t.Context(), s, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryCommand is Command for one that may fail.
func TryCommand(ctx context.Context, s *Setup, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.Program.path, append(slices.Clone(args), s.common()...)...) // our own binary
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.environment(), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), errors.Join(fmt.Errorf("formsvc %s: %w", strings.Join(args, " "), err), errors.New(stderr.String()))
	}
	return stdout.String(), nil
}

// notable returns the lines of a log that aren't routine.
func notable(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"level":"INFO"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	list := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}
