package process

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
	"github.com/formsvc/toolkit/webhook/egress"
)

// A sender is the service in one process: it accepts responses, delivers them,
// or both, as it is told.
type sender struct {
	cfg         *worker.Config
	store       database.Store
	svc         *formsvc.Service
	stopProfile func() error
	engine      *running // nil when nothing delivers
}

// running is an engine that delivers.
type running struct {
	stop context.CancelFunc
	done chan error
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
	_, err := s.svc.Responses.Create(ctx, formsvc.ID(s.cfg.Account), campaign, formsvc.ResponseInput{
		User: user, Answers: answers,
	})
	return err
}

// start delivers with the engine's defaults, but to this machine, which is no
// public address.
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.engine = &running{cancel, make(chan error, 1)}
	go func() { s.engine.done <- engine.Run(ctx) }()
	return nil
}

// stop returns when everything that came of the deliveries is recorded.
func (s *sender) stop() error {
	if s.engine == nil {
		return nil
	}
	s.engine.stop()
	err := <-s.engine.done
	s.engine = nil
	return err
}
