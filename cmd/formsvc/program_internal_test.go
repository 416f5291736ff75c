package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Few tests start the program that users get, for its signals, its death and its environment. It is built once.

// buildDir is where programs are built.
var buildDir string

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // most tests wait most of the time
	}
	buildDir = must(os.MkdirTemp("", "formsvc-test-"))
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// builds has a function for each set of build tags, which builds the program once.
var builds sync.Map

// program returns the path of the program with the build tags, or with another flag of go build.
func program(t testing.TB, tags string) string {
	t.Helper()
	path, flag := filepath.Join(buildDir, "formsvc-"+filepath.Base(tags)), "-tags="+tags
	if strings.HasPrefix(tags, "-") {
		flag = tags
	}
	build, _ := builds.LoadOrStore(tags, sync.OnceValues(func() ([]byte, error) {
		return exec.Command("go", "build", "-buildvcs=false", flag, "-o", path, ".").CombinedOutput() // git may not trust the checkout
	}))
	if out, err := build.(func() ([]byte, error))(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// execute starts the program with the build tags.
func (s *shell) execute(t testing.TB, tags string, line ...string) *process {
	t.Helper()
	ended, end := context.WithCancel(context.Background())
	p := &process{ctx: ended, cmd: exec.Command(program(t, tags), s.args(line)...)}
	own := func(v string) bool { return strings.HasPrefix(v, "FORMSVC_") }
	p.cmd.Dir, p.cmd.Env = t.TempDir(), append(slices.DeleteFunc(os.Environ(), own), s.env...)
	out, err := os.Create(filepath.Join(p.cmd.Dir, "out")) // unlike a pipe, it has all that was printed before a line of the log
	noError(t, err)
	defer func() { _ = out.Close() }() // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = out, &p.log
	noError(t, p.cmd.Start())
	p.cancel = sync.OnceFunc(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }) // it may have ended
	go func() {
		defer end()
		_ = p.cmd.Wait() // the state says how it ended
		p.status = p.cmd.ProcessState.ExitCode()
	}()
	p.endsWith(t, p.kill)
	return p
}

// kill kills a process that execute has started.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ctx.Done()
}

// spawn starts a server like serve, but as a process of its own.
func (s *shell) spawn(t testing.TB, flags ...string) *service {
	t.Helper()
	return s.spawnAs(t, "", flags...)
}

// spawnAs is spawn for another build, see program.
func (s *shell) spawnAs(t testing.TB, tags string, flags ...string) *service {
	t.Helper()
	p := s.execute(t, tags, serveLine(flags)...)
	p.log.wait(p.ctx, servingPattern)
	if text, err := os.ReadFile(filepath.Join(p.cmd.Dir, "out")); err == nil {
		_, _ = p.out.Write(text)
	}
	return s.await(t, p)
}
