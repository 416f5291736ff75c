package process

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

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
	if cfg.DSN == "" { // only measures claims
		s.stopProfile = func() error { return nil }
		return s, worker.Reply{}, nil
	}
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
	err := errors.Join(s.stop(), s.stopProfile())
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

func (s *sender) Do(ctx context.Context, c worker.Command) (worker.Reply, error) {
	switch c.Do {
	case worker.Accept:
		return worker.Offer(ctx, &c, s.accept)
	case worker.Start:
		return worker.Reply{}, s.start(ctx)
	case worker.Stop:
		return worker.Reply{}, s.stop()
	case worker.Claims:
		return measureClaims(ctx, &c)
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

// measureClaims times how long it takes to find and claim claimed deliveries.
// The databases take turns, so that both meet the same machine.
func measureClaims(ctx context.Context, c *worker.Command) (reply worker.Reply, err error) {
	reply.Took = make([][]time.Duration, len(c.Databases))
	stores := make([]database.Store, len(c.Databases))
	for i := range c.Databases {
		if stores[i], err = database.OpenStore(ctx, c.Databases[i].DSN, 0); err != nil {
			return reply, err
		}
		defer func() { err = errors.Join(err, stores[i].Close()) }()
	}
	for range c.N {
		for i, s := range stores {
			took, err := timeClaim(ctx, s, c.Databases[i].Endpoints)
			if err != nil {
				return reply, err
			}
			reply.Took[i] = append(reply.Took[i], took)
		}
	}
	return reply, nil
}

// Claimed is how many deliveries a measured claim takes.
const Claimed = 64

func timeClaim(ctx context.Context, q delivery.Queue, endpoints []string) (time.Duration, error) {
	now := time.Now()
	req := delivery.ClaimRequest{Now: now, Lease: time.Minute}
	for i, id := range endpoints {
		n := Claimed * (i + 1) / len(endpoints)
		req.Shares = append(req.Shares, delivery.Share{Endpoint: id, N: n - Claimed*i/len(endpoints)})
	}
	ready, err := q.Ready(ctx, now)
	if err != nil {
		return 0, err
	}
	claims, err := q.Claim(ctx, req)
	took := time.Since(now)
	if err == nil && (len(claims) != Claimed || len(ready) < len(endpoints)) {
		err = fmt.Errorf("%d of %d deliveries were claimed, %d endpoints were ready", len(claims), Claimed, len(ready))
	}
	return took, err
}
