package torture_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A setup says which data a binary has, and how it is started.
type setup struct {
	dsn, data string   // for --db and --data
	blobs     string   // for --blobs; "" for files below data
	env       []string // NAME=VALUE
	flags     []string // of serve
	under     []string // a program to run it under, such as strace with its flags
}

// common are the flags of every command.
func (s *setup) common() []string {
	args := []string{"--db", s.dsn, "--data", s.data}
	if s.blobs != "" {
		args = append(args, "--blobs", s.blobs)
	}
	return args
}

func (s *setup) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FORMSVC_") })
	return append(env, s.env...)
}

// program returns the path of the binary.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a management command, which must succeed, and returns its standard output.
func (s *setup) command(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(t), append(args, s.common()...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = s.environment(), &stderr
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
	args := slices.Concat(s.under, []string{program(t), "serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, s.common(), s.flags)
	p := &process{cmd: exec.Command(args[0], args[1:]...), log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = s.environment(), log, log
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
