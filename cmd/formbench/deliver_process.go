package main

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

// workCommand is the argument that makes this program a worker.
const workCommand = "work"

// The kinds of workers.
const (
	senderRole    = "sender"    // formsvc: accepts, delivers or both
	receiverRole  = "receiver"  // takes deliveries
	referenceRole = "reference" // signs and posts from memory
	hostileRole   = "hostile"   // receivers that do harm
)

// work is a worker's process.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	return worker.Run(ctx, in, out, func(ctx context.Context, cfg *worker.Config) (worker.Worker, worker.Reply, error) {
		switch cfg.Role {
		case senderRole:
			return newSender(ctx, cfg)
		case receiverRole:
			return newReceiver(ctx)
		case referenceRole:
			return newReference(cfg)
		case hostileRole:
			return newHostile(ctx)
		}
		return nil, worker.Reply{}, fmt.Errorf("there is no worker %q", cfg.Role)
	})
}

// A process is a worker.
type process struct {
	ready  worker.Reply
	pid    int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *json.Decoder
	stderr bytes.Buffer // passed on to log when the process has ended
	log    io.Writer
	ended  bool
}

// startProcess returns when the worker is ready. args follow the program, which
// is another one than ours only for peers.
func startProcess(ctx context.Context, cfg worker.Config, log io.Writer, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...), log: log} //nolint:gosec // the user names the program
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
	p.pid = p.cmd.Process.Pid
	if p.ready, err = p.ask(cfg); err != nil {
		return nil, fmt.Errorf("start a worker: %w", errors.Join(err, p.stop()))
	}
	return p, nil
}

// ask sends a line and reads the answer.
func (p *process) ask(line any) (r worker.Reply, err error) {
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

// do has the worker do something.
func (p *process) do(c worker.Command) (worker.Reply, error) { return p.ask(c) }

// stop ends the worker and fails when it failed. It may be called again.
func (p *process) stop() error {
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

func (p *process) step(c worker.Command) func() (worker.Reply, error) {
	return func() (worker.Reply, error) { return p.do(c) }
}
