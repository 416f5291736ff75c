// Package process has the processes of the benchmarks that deliver: it starts workers,
// and is the four of them that formbench has itself, the service, the receiver, the
// reference and the receivers that do harm. How they are talked to is in package worker.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/formsvc/toolkit/cmd/formbench/internal/child"
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
	*child.Process
	Ready worker.Reply
}

// Start returns when the worker is ready. args follow the program, which
// is another one than ours only for peers.
func Start(ctx context.Context, cfg worker.Config, log io.Writer, program string, args ...string) (*Process, error) {
	p := &Process{}
	var err error
	p.Process, err = child.Start(ctx, log, cfg, &p.Ready, program, args...)
	if err == nil && p.Ready.Error != "" {
		err = errors.Join(errors.New("worker: "+p.Ready.Error), p.Stop())
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Do has the worker do something.
func (p *Process) Do(c worker.Command) (r worker.Reply, err error) {
	if err := p.Ask(c, &r); err != nil {
		return r, fmt.Errorf("worker: %w", err)
	}
	if r.Error != "" {
		return r, errors.New("worker: " + r.Error)
	}
	return r, nil
}

// Stop ends the worker, if there is one, and fails when it failed. It may be called again.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	return p.Process.Stop()
}
