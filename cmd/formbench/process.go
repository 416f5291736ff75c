package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// patience is how long a process may take to start or to end.
const patience = time.Minute

// A process is a running server.
type process struct {
	addr  string // HOST:PORT
	cmd   *exec.Cmd
	log   string // the file with its output
	ended chan struct{}
}

// start runs a program with its output in a directory, and waits until it says that it serves. It doesn't see our
// variables, and doesn't outlive this process.
func start(ctx context.Context, dir, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, path, args...), log: filepath.Join(dir, "log"), ended: make(chan struct{})} //nolint:gosec // the user names the program
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORMSVC_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // stop looks at the state
		close(p.ended)
	}()
	if p.addr, err = p.await(ctx, `"msg":"serving","addr":"([^"]+)"`); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// await waits until a pattern is in the output, and returns its first group.
func (p *process) await(ctx context.Context, pattern string) (string, error) {
	compiled := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		text, _ := os.ReadFile(p.log) // an unreadable one counts as empty
		if m := compiled.FindSubmatch(text); m != nil {
			return string(m[1]), nil
		}
		select {
		case <-p.ended:
			return "", errors.New("it ended early")
		default:
		}
	}
	return "", errors.Join(ctx.Err(), errors.New("it doesn't serve"))
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if !p.cmd.ProcessState.Success() {
		text, _ := os.ReadFile(p.log) // only for the message
		return fmt.Errorf("%s: %s: %s", p.cmd.Path, p.cmd.ProcessState, text[max(0, len(text)-2000):])
	}
	return nil
}

// usage has the CPU times used so far, in seconds, and the largest resident memory of the server so far, in bytes. The
// kernel counts the times of processes in steps of 10 ms.
type usage struct {
	server, self, machine float64
	peak                  uint64
}

// used returns what the process, this process and the whole machine have used.
func (p *process) used() (u usage, err error) {
	server, err := procfs.NewProc(p.cmd.Process.Pid)
	if err != nil {
		return u, err
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return u, err
	}
	self, err := fs.Self()
	if err != nil {
		return u, err
	}
	status, statusErr := server.NewStatus()
	serverTimes, serverErr := server.Stat()
	selfTimes, selfErr := self.Stat()
	all, err := fs.Stat()
	c := all.CPUTotal
	u = usage{serverTimes.CPUTime(), selfTimes.CPUTime(), c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ, status.VmHWM}
	return u, errors.Join(statusErr, serverErr, selfErr, err)
}

// processor names the machine's processors.
func processor() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if list, err := fs.CPUInfo(); err == nil && len(list) > 0 && list[0].ModelName != "" {
			return fmt.Sprintf("%d × %s", len(list), list[0].ModelName)
		}
	}
	return "unknown" // not every architecture has a name
}
