// Package process has the processes of the benchmarks that deliver: it starts workers,
// and is the four of them that formbench has itself, the service, the receiver, the
// reference and the receivers that do harm. How they are talked to is in package worker.
package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// Command is the argument that makes this program a worker.
const Command = "work"

// The kinds of workers.
const (
	SenderRole    = "sender"    // formsvc: accepts, delivers or both
	ReceiverRole  = "receiver"  // takes deliveries
	ReferenceRole = "reference" // signs and posts from memory
	HostileRole   = "hostile"   // receivers that do harm
)

// Work is a worker's process.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	return worker.Run(ctx, in, out, func(ctx context.Context, cfg *worker.Config) (worker.Worker, worker.Reply, error) {
		switch cfg.Role {
		case SenderRole:
			return newSender(ctx, cfg)
		case ReceiverRole:
			return newReceiver(ctx)
		case ReferenceRole:
			return newReference(cfg)
		case HostileRole:
			return newHostile(ctx)
		}
		return nil, worker.Reply{}, fmt.Errorf("there is no worker %q", cfg.Role)
	})
}

// A Process is a worker.
type Process struct {
	Ready  worker.Reply
	PID    int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *json.Decoder
	stderr bytes.Buffer // passed on to log when the process has ended
	log    io.Writer
	ended  bool
}

// Start returns when the worker is ready. args follow the program, which
// is another one than ours only for peers.
func Start(ctx context.Context, cfg worker.Config, log io.Writer, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, args...), log: log} //nolint:gosec // the user names the program
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	p.stdin, p.stdout = stdin, json.NewDecoder(stdout)
	p.cmd.Cancel = stdin.Close
	p.cmd.WaitDelay = server.ShutdownTimeout
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	p.PID = p.cmd.Process.Pid
	if p.Ready, err = p.ask(cfg); err != nil {
		return nil, fmt.Errorf("start a worker: %w", errors.Join(err, p.Stop()))
	}
	return p, nil
}

// ask sends a line and reads the answer.
func (p *Process) ask(line any) (r worker.Reply, err error) {
	if err := json.NewEncoder(p.stdin).Encode(line); err != nil {
		return r, fmt.Errorf("worker: %w", err)
	}
	if err := p.stdout.Decode(&r); err != nil {
		return r, fmt.Errorf("worker: %w", err)
	}
	if r.Error != "" {
		return r, errors.New("worker: " + r.Error)
	}
	return r, nil
}

// Do has the worker do something.
func (p *Process) Do(c worker.Command) (worker.Reply, error) { return p.ask(c) }

// Stop ends the worker and fails when it failed. It may be called again.
func (p *Process) Stop() error {
	if p == nil || p.ended {
		return nil
	}
	p.ended = true
	_ = p.stdin.Close() // it may be closed already
	timer := time.AfterFunc(server.ShutdownTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	_, _ = p.stderr.WriteTo(p.log)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// Step returns a function that has the worker do something.
func (p *Process) Step(c worker.Command) func() (worker.Reply, error) {
	return func() (worker.Reply, error) { return p.Do(c) }
}
