// Package child starts processes that read a configuration as JSON from their standard input, and report on their
// standard output that they are ready. They end when their input does, so that they never outlive their parent.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// ShutdownTimeout is the time in which a process must end.
const ShutdownTimeout = 20 * time.Second

// A Process is a started process.
type Process struct {
	Begin  time.Time // when it was started
	PID    int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *json.Decoder
	stderr bytes.Buffer // passed on to log when the process has ended
	log    io.Writer
	ended  bool
}

// Start returns when the process reports with its first reply that it is ready.
func Start(ctx context.Context, log io.Writer, cfg, ready any, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, args...), log: log, Begin: time.Now()} //nolint:gosec // the user names the program
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p.stdin, p.stdout = stdin, json.NewDecoder(stdout)
	p.cmd.Cancel = stdin.Close
	p.cmd.WaitDelay = ShutdownTimeout
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p.PID = p.cmd.Process.Pid
	if err := p.Ask(cfg, ready); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, errors.Join(err, p.Stop()))
	}
	return p, nil
}

// Ask sends a line and reads the reply.
func (p *Process) Ask(line, answer any) error {
	if err := json.NewEncoder(p.stdin).Encode(line); err != nil {
		return err
	}
	return p.stdout.Decode(answer)
}

// Stop ends the process and returns its error. It may be called again.
func (p *Process) Stop() error {
	if p == nil || p.ended {
		return nil
	}
	p.ended = true
	_ = p.stdin.Close() // it may be closed already
	timer := time.AfterFunc(ShutdownTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	_, _ = p.stderr.WriteTo(p.log)
	if err != nil {
		return fmt.Errorf("%s: %w", p.cmd.Path, err)
	}
	return nil
}
