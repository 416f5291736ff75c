package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/formsvc"
)

// postgres measures new responses beside a handler with one statement per request,
// and beside rows that are inserted without any server in front.
func (p *peerBench) postgres(ctx context.Context, round int) error {
	for _, conns := range p.PeerConns {
		if conns == 1 {
			continue // there is nothing to share
		}
		for _, system := range rotated([]string{groupSystem, singleSystem, insertSystem}, round) {
			c := cell{What: createWhat, Store: postgresStore, System: system, Conns: conns, Round: round + 1}
			measure := func() error { return p.createCell(ctx, &c, 0) }
			if system == insertSystem {
				measure = func() error { return p.insertCell(ctx, &c) }
			}
			if err := measure(); err != nil {
				return fmt.Errorf("%s: %w", &c, err)
			}
		}
	}
	return nil
}

// insertCell measures and notes single rows, each by a prepared statement of its
// own transaction, as pgbench would insert them.
func (p *peerBench) insertCell(ctx context.Context, c *cell) (err error) {
	db, err := newDatabase(ctx, postgresStore, p.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	if err := onServer(ctx, db.dsn, singleSchema); err != nil {
		return err
	}
	pool, err := openPool(ctx, db.dsn, c.Conns)
	if err != nil {
		return err
	}
	begin := time.Now().Add(p.Warmup)
	l := &inserts{pool: pool, conns: c.Conns, begin: begin, end: begin.Add(p.Duration)}
	s, before, after, err := l.watched(ctx)
	pool.Close()
	if err != nil {
		return err
	}
	c.figures = newFigures(&s, before, after, p.Duration)
	p.note(c)
	return singleHolds(ctx, db.dsn, s.answered, "single_responses")
}

// inserts is a closed loop of rows.
type inserts struct {
	pool       *pgxpool.Pool
	conns      int
	begin, end time.Time
}

// watched inserts until the end and reads the CPU times around. No server is
// counted: there is only this process, and Postgres.
func (l *inserts) watched(ctx context.Context) (all sample, before, after usage, err error) {
	parts := make([]sample, l.conns)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() { parts[i].err = l.work(ctx, &parts[i]) })
	}
	go func() { wg.Wait(); close(done) }()
	waitUntil(l.begin, done)
	before, err = readUsage(os.Getpid())
	waitUntil(l.end, done)
	after, afterErr := readUsage(os.Getpid())
	<-done
	before.server, after.server = 0, 0
	for i := range parts {
		all.add(&parts[i])
	}
	slices.Sort(all.latencies)
	return all, before, after, errors.Join(all.err, err, afterErr)
}

func (l *inserts) work(ctx context.Context, s *sample) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	in := newInput(submission(0))
	respondent, err := json.Marshal(in.User)
	if err != nil {
		return err
	}
	answers, err := json.Marshal(in.Responses)
	if err != nil {
		return err
	}
	for {
		start := time.Now()
		if !start.Before(l.end) {
			return nil
		}
		if _, err := conn.Exec(ctx, insertResponse, rand.Text(), string(inventedWorld().campaign.ID), rand.Text()[:11],
			formsvc.StatusPending, string(respondent), string(answers), start); err != nil {
			return err
		}
		end := time.Now()
		s.answered++
		if !end.Before(l.begin) && end.Before(l.end) {
			s.latencies = append(s.latencies, end.Sub(start))
		}
	}
}
