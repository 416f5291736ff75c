// Package process has the processes of the delivery benchmarks. It starts workers, and implements formbench's own four:
// the service, the receiver, the reference and the hostile receivers. Package worker has their protocol.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/child"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
	"github.com/formsvc/toolkit/webhook/egress"
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

// Main runs the process of a command, if there is such a command.
func Main(ctx context.Context, command string, in io.Reader, out, log io.Writer) (known bool, err error) {
	switch command {
	case server.Command:
		return true, server.Serve(ctx, in, out, log)
	case Command:
		return true, worker.Run(ctx, in, out, newWorker)
	}
	return false, nil
}

func newWorker(ctx context.Context, cfg *worker.Config) (worker.Worker, worker.Reply, error) {
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
}

// A Process is a running worker.
type Process struct {
	*child.Process
	Ready worker.Reply
}

// Start starts a worker and returns when it is ready. args follow the program, which is this program except for peers.
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

// Do sends a command to the worker and returns its reply.
func (p *Process) Do(c worker.Command) (r worker.Reply, err error) {
	if err := p.Ask(c, &r); err != nil {
		return r, fmt.Errorf("worker: %w", err)
	}
	if r.Error != "" {
		return r, errors.New("worker: " + r.Error)
	}
	return r, nil
}

// Stop ends the worker, if there is one, and returns its error. It may be called again.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	return p.Process.Stop()
}

// A reference signs and posts from memory: it shows the cost of delivering without a queue.
type reference struct {
	poster *worker.Poster
	body   worker.Body
	conns  int
}

func newReference(cfg *worker.Config) (worker.Worker, worker.Reply, error) {
	body, err := worker.NewBody(cfg.Body)
	if err != nil {
		return nil, worker.Reply{}, err
	}
	return &reference{worker.NewPoster(cfg.URL, cfg.Conns), body, cfg.Conns}, worker.Reply{}, nil
}

func (r *reference) Do(ctx context.Context, c worker.Command) (worker.Reply, error) {
	if c.Do != worker.Post {
		return worker.Reply{}, errors.New("a reference can't do that")
	}
	c.Callers = r.conns
	return worker.Offer(ctx, &c, func(ctx context.Context, i int) error {
		return r.poster.Post(ctx, strconv.Itoa(i), r.body.With(i))
	})
}

func (r *reference) Close() error {
	r.poster.Close()
	return nil
}

// A sender is the service in one process: it accepts responses, delivers them, or both, as commanded.
type sender struct {
	cfg         *worker.Config
	store       database.Store
	svc         *formsvc.Service
	stopProfile func() error
	cancel      context.CancelFunc // ends the engine; nil when none delivers
	done        chan error
}

func newSender(ctx context.Context, cfg *worker.Config) (worker.Worker, worker.Reply, error) {
	s := &sender{cfg: cfg}
	var err error
	if s.store, err = database.OpenStore(ctx, cfg.DSN, 0); err != nil {
		return nil, worker.Reply{}, err
	}
	if s.svc, err = formsvc.New(s.store, nil); err != nil {
		return nil, worker.Reply{}, errors.Join(err, s.store.Close())
	}
	if s.stopProfile, err = worker.StartProfile(cfg.Profile); err != nil {
		return nil, worker.Reply{}, errors.Join(err, s.store.Close())
	}
	return s, worker.Reply{}, nil
}

func (s *sender) Close() error {
	return errors.Join(s.stop(), s.stopProfile(), s.store.Close())
}

func (s *sender) Do(ctx context.Context, c worker.Command) (worker.Reply, error) {
	switch c.Do {
	case worker.Accept:
		return worker.Offer(ctx, &c, s.accept)
	case worker.Start:
		return worker.Reply{}, s.start(ctx)
	case worker.Stop:
		return worker.Reply{}, s.stop()
	}
	return worker.Reply{}, errors.New("a sender can't do that")
}

// accept submits response number i to one of the campaigns.
func (s *sender) accept(ctx context.Context, i int) error {
	user, answers := fixture.Submission(i)
	campaign := formsvc.ID(s.cfg.Campaigns[i%len(s.cfg.Campaigns)])
	_, err := s.svc.Responses.Create(ctx, formsvc.CampaignKey{AccountID: formsvc.ID(s.cfg.Account), ID: campaign}, formsvc.ResponseInput{
		User: user, Answers: answers,
	})
	return err
}

// start delivers with the engine's defaults, but to this machine, which has no public address.
func (s *sender) start(ctx context.Context) error {
	policy, err := egress.New(&egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return fmt.Errorf("start an engine: %w", err)
	}
	opts := delivery.Options{Control: policy.Control}
	if s.cfg.Cut {
		opts.DrainTimeout = -1
	}
	engine, err := delivery.New(s.store, &opts)
	if err != nil {
		return fmt.Errorf("start an engine: %w", err)
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done = make(chan error, 1)
	go func() { s.done <- engine.Run(ctx) }()
	return nil
}

// stop returns when the outcomes of all deliveries are recorded.
func (s *sender) stop() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.done
}
