package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Mode is a way to stop a server.
type Mode int

const (
	// Fast ends the connections, rolls back their transactions and shuts down in order.
	Fast Mode = iota
	// Immediate ends the server's processes at once. The next start recovers from the
	// log, as after a crash.
	Immediate
	// Kill kills the first process of the server, then all others (SIGKILL).
	Kill
)

// A process is a program that runs beside the test.
type process struct {
	*os.Process
	ended chan struct{} // closed when the process has ended
}

// Stop stops the server if it runs, and returns when all of its processes have ended. Its
// data stay.
func (s *Server) Stop(t testing.TB, mode Mode) {
	t.Helper()
	if s.process == nil {
		return
	}
	switch mode {
	case Kill:
		s.end()
		return
	case Fast:
		_ = s.process.Signal(os.Interrupt) // it may have ended by itself
	case Immediate:
		_ = s.process.Signal(syscall.SIGQUIT)
	}
	select {
	case <-s.process.ended:
		s.process = nil
	case <-time.After(limit):
		t.Fatalf("the server does not stop; the end of its log:\n%s", s.log())
	}
}

// Restart stops the server in order if it runs, and starts it again with the same port
// and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t, Fast)
	s.start(t)
}

// end kills all processes of the server.
func (s *Server) end() {
	segment, _ := strconv.Atoi(last(s.status(6)))
	for over := false; !over; time.Sleep(time.Millisecond) {
		_ = s.process.Kill()
		// A process of the server may start another until it has ended.
		select {
		case <-s.process.ended:
			over = true
		default:
		}
		for _, pid := range processesIn(s.data) {
			over = false
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
	s.process = nil
	if segment > 0 {
		removeSegment(segment)
	}
}

// start starts the server and waits until it accepts connections. A server that has run
// before keeps its port.
func (s *Server) start(t testing.TB) {
	t.Helper()
	_, err := os.Stat(s.logFile())
	fresh := errors.Is(err, fs.ErrNotExist)
	for range 20 {
		if s.launch(t) {
			return
		}
		if !fresh || !strings.Contains(s.log(), "Address already in use") {
			break
		}
		if err := os.Remove(s.logFile()); err != nil {
			t.Fatal(err)
		}
		s.port = freePort()
	}
	t.Fatalf("the server did not start; the end of its log:\n%s", s.log())
}

// launch starts the server's first process and reports whether it accepts connections
// before it ends.
func (s *Server) launch(t testing.TB) bool {
	t.Helper()
	s.process = s.programs.launch(t, s.logFile(), filepath.Join(s.programs.bin, "postgres"), "-D", s.data, "-p", strconv.Itoa(s.port))
	pid := strconv.Itoa(s.process.Pid)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if s.status(0) == pid && s.status(7) == "ready" {
			return true
		}
		select {
		case <-s.process.ended:
			s.process = nil
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.end()
	return false
}

// status returns a line of postmaster.pid, where the server reports its status.
func (s *Server) status(line int) string {
	b, _ := os.ReadFile(filepath.Join(s.data, "postmaster.pid")) // a stopped server has none
	if lines := strings.Split(string(b), "\n"); line < len(lines) {
		return strings.TrimSpace(lines[line])
	}
	return ""
}

func last(line string) string { return line[strings.LastIndexByte(line, ' ')+1:] }

func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

// log returns the last lines of the server's log.
func (s *Server) log() string { return tail(s.logFile()) }

func tail(file string) string {
	b, err := os.ReadFile(file) // a file of the server
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// programs are PostgreSQL's programs.
type programs struct {
	bin     string
	account *account // runs them; nil for the account of the test
}

// need ends the test if a program is missing.
func need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s here, and in CI nothing may be skipped", what)
	}
	t.Skipf("SKIPPED: there is no %s here", what)
}

// findPrograms finds the programs of PostgreSQL 14 or later: in PATH, then in Debian's
// directories, newest first.
func findPrograms(t testing.TB) *programs {
	t.Helper()
	var dirs []string
	if program, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(program))
	}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(debian)
	for _, dir := range append(dirs, debian...) {
		if version(dir) >= 14 {
			return &programs{bin: dir, account: findAccount(t)}
		}
	}
	need(t, "PostgreSQL 14 or later")
	return nil
}

// version returns the major version of the programs in a directory, or 0 if one is
// missing.
func version(dir string) int {
	for _, name := range []string{"initdb", "pg_ctl", "pg_basebackup"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return 0
		}
	}
	out, _ := exec.Command(filepath.Join(dir, "postgres"), "--version").Output() // it ends at once
	match := regexp.MustCompile(`\) (\d+)`).FindSubmatch(out)
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(match[1]))
	return n
}

// directory creates a directory in which the programs may write. A process outside of the
// test removes it, however the test ends.
func (p *programs) directory(t testing.TB) string {
	t.Helper()
	dir, err := p.makeDir("")
	if err == nil && !p.writes(dir) { // TMPDIR is closed to the account
		_ = os.Remove(dir)
		dir, err = p.makeDir("/tmp")
	}
	if err != nil {
		t.Fatal(err)
	}
	const script = `trap '' HUP INT QUIT TERM; cat >/dev/null; for try in 1 2 3 4 5; do rm -rf "$1" && break; sleep $try; done`
	cleaner := exec.Command("/bin/sh", "-c", script, "sh", dir) // it outlives the test
	cleaner.Dir, cleaner.SysProcAttr = "/", detached()
	end, err := cleaner.StdinPipe()
	if err == nil {
		err = cleaner.Start()
	}
	if err != nil {
		t.Fatal(errors.Join(err, os.RemoveAll(dir)))
	}
	t.Cleanup(func() {
		_ = end.Close()
		if err := cleaner.Wait(); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}

// makeDir creates a directory of the account below above, or in the directory for
// temporary files if above is empty.
func (p *programs) makeDir(above string) (string, error) {
	dir, err := os.MkdirTemp(above, "formsvc-pg.")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the kernel's name for it
		return "", err
	}
	return dir, p.account.own(dir)
}

// writes reports whether the account can write in a directory.
func (p *programs) writes(dir string) bool {
	cmd := exec.Command("/bin/sh", "-c", `test -w "$1"`, "sh", dir)
	cmd.Dir, cmd.SysProcAttr = "/", p.account.attributes()
	return cmd.Run() == nil
}

// environment returns the environment of every program.
func (p *programs) environment() []string {
	return []string{"PATH=" + p.bin + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// run runs one of the programs and returns its output.
func (p *programs) run(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...) // a program of PostgreSQL
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", p.environment(), p.account.attributes()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// launch starts a program that keeps running; its output is appended to a file.
func (p *programs) launch(t testing.TB, log, program string, args ...string) *process {
	t.Helper()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // a file of the server
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()      // the program has its own
	cmd := exec.Command(program, args...) // a program of PostgreSQL; the function that starts it ends it
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", p.environment(), p.account.attributes()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("start %s: %w", filepath.Base(program), err))
	}
	started := &process{Process: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the log says how it ended
		close(started.ended)
	}()
	return started
}
