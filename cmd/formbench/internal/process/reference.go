package process

import (
	"context"
	"errors"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// A reference signs and posts from memory: what delivering costs without a
// queue.
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
