package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The systems that the API is compared with, besides the ceiling. Where nothing
// else is said, PocketBase is as it comes, synchronous NORMAL, and anyone may use
// its collections.
const (
	pocketSystem  = "PocketBase"
	tokenSystem   = "PocketBase, token"               //nolint:gosec // a name: only a superuser may
	fullSystem    = "PocketBase FULL"                 // what is answered is on the disk
	batchSystem   = "PocketBase FULL, batch of three" // response, event and delivery in one transaction
	createdSystem = "PocketBase, by created"          // sorted by a field instead of @rowid, which has an index

	offsetSystem = "formsvc, offset" // pages by number instead of by cursor
	singleSystem = "single"          // a handler with one statement per request
	insertSystem = "inserts"         // no server: one row per statement
)

// What the requests of a cell do that no other part does.
const (
	dueWhat  = "create, open loop"
	pageWhat = "far page" // half-way through the campaign
)

// The parts of a run that compare with PocketBase, and with Postgres used plainly.
const (
	peersPart = "peers" // stands for all of these

	peerCreatePart   = "peers-create"
	peerReadPart     = "peers-read"
	peerFilesPart    = "peers-files"
	peerStartPart    = "peers-start"
	peerPostgresPart = "peers-postgres"
)

func peerParts() []string {
	return []string{peerCreatePart, peerReadPart, peerFilesPart, peerStartPart, peerPostgresPart}
}

// A peerResult is what these parts found out.
type peerResult struct {
	Requests []cell      `json:"requests"`
	Files    []fileCell  `json:"files"`
	Starts   []startCell `json:"starts"`
	Ratios   []ratio     `json:"ratios"`
}

// A peerBench is the parts of a run that compare with peers.
type peerBench struct {
	*bench
	template string // directory of PocketBase with collections, and nothing in them
	full     string // the same with -peer-fill responses
	ours     *database
	world    world // of the filled database of ours
	result   peerResult
}

// peerCells measures them. What was measured until one fails is returned, too.
func peerCells(ctx context.Context, b *bench) (peerResult, error) {
	p := &peerBench{bench: b}
	err := p.all(ctx)
	return p.result, err
}

func (p *peerBench) all(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, p.close()) }()
	for _, part := range []struct {
		name, store string
		run         func(ctx context.Context, round int) error
	}{
		{peerCreatePart, sqliteStore, p.creates}, {peerReadPart, sqliteStore, p.reads}, {peerFilesPart, sqliteStore, p.uploads},
		{peerStartPart, sqliteStore, p.starts}, {peerPostgresPart, postgresStore, p.postgres},
	} {
		if !slices.Contains(p.Only, part.name) || !slices.Contains(p.Stores, part.store) {
			continue
		}
		for round := range p.Rounds {
			if err := part.run(ctx, round); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	p.result.Ratios = peerRatios(p.result.Requests)
	return nil
}

// preparePeers finds out whether there is PocketBase to compare with. What needs it
// is not measured without.
func preparePeers(b *bench) (err error) {
	if b.PeerProgram != "" {
		b.PeerProgram, err = filepath.Abs(b.PeerProgram)
		return err
	}
	without := func(part string) bool { return slices.Contains(peerParts(), part) && part != peerPostgresPart }
	if slices.ContainsFunc(b.Only, without) {
		b.warn("NOT MEASURED: PocketBase, since -peers does not name the program of cmd/formbench/peers")
		b.Only = slices.DeleteFunc(b.Only, without)
	}
	return nil
}

// close removes what was made for all rounds.
func (p *peerBench) close() (err error) {
	for _, dir := range []string{p.template, p.full} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	if p.ours != nil {
		err = errors.Join(err, p.ours.drop())
	}
	return err
}

// note adds a measured cell.
func (p *peerBench) note(c *cell) {
	p.result.Requests = append(p.result.Requests, *c)
	_, _ = fmt.Fprintf(p.log, "%s: %.0f/s, server %.0f µs\n", c, c.PerSecond, c.ServerMicros)
}
