// Package peers measures the API beside PocketBase, on SQLite, and beside Postgres used
// plainly.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/files"
	"github.com/formsvc/toolkit/cmd/formbench/internal/requests"
)

// The systems that the API is compared with, besides the ceiling. Where nothing
// else is said, PocketBase is as it comes, synchronous NORMAL, and anyone may use
// its collections.
const (
	PocketSystem  = "PocketBase"
	TokenSystem   = "PocketBase, token"               //nolint:gosec // a name: only a superuser may
	FullSystem    = "PocketBase FULL"                 // what is answered is on the disk
	BatchSystem   = "PocketBase FULL, batch of three" // response, event and delivery in one transaction
	createdSystem = "PocketBase, by created"          // sorted by a field instead of @rowid, which has an index

	offsetSystem = "formsvc, offset" // pages by number instead of by cursor
	InsertSystem = "inserts"         // no server: one row per statement
)

// What the requests of a cell do that no other part does.
const (
	dueWhat  = "create, open loop"
	pageWhat = "far page" // half-way through the campaign
)

// A Result is what these parts found out.
type Result struct {
	Requests []requests.Cell  `json:"requests"`
	Files    []files.Cell     `json:"files"`
	Starts   []StartCell      `json:"starts"`
	Ratios   []requests.Ratio `json:"ratios"`
}

// A runner is the parts of a run that compare with peers.
type runner struct {
	*bench.Bench
	template string // directory of PocketBase with collections, and nothing in them
	full     string // the same with -peer-fill responses
	ours     *database.Database
	world    database.World // of the filled database of ours
	result   Result
}

// Run measures them. What was measured until one fails is returned, too.
func Run(ctx context.Context, b *bench.Bench) (Result, error) {
	p := &runner{Bench: b}
	err := p.all(ctx)
	return p.result, err
}

func (p *runner) all(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, p.close()) }()
	for _, part := range []struct {
		name, store string
		run         func(ctx context.Context, round int) error
	}{
		{bench.PeerCreatePart, bench.SQLiteStore, p.creates}, {bench.PeerReadPart, bench.SQLiteStore, p.reads}, {bench.PeerFilesPart, bench.SQLiteStore, p.uploads},
		{bench.PeerStartPart, bench.SQLiteStore, p.starts}, {bench.PeerPostgresPart, bench.PostgresStore, p.postgres},
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
	p.result.Ratios = ratios(p.result.Requests)
	return nil
}

// Prepare finds out whether there is PocketBase to compare with. What needs it
// is not measured without.
func Prepare(b *bench.Bench) (err error) {
	if b.PeerProgram != "" {
		b.PeerProgram, err = filepath.Abs(b.PeerProgram)
		return err
	}
	without := func(part string) bool {
		return slices.Contains(bench.PeerParts(), part) && part != bench.PeerPostgresPart
	}
	if slices.ContainsFunc(b.Only, without) {
		b.Warn("NOT MEASURED: PocketBase, since -peers does not name the program of cmd/formbench/peers")
		b.Only = slices.DeleteFunc(b.Only, without)
	}
	return nil
}

// close removes what was made for all rounds.
func (p *runner) close() (err error) {
	for _, dir := range []string{p.template, p.full} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	if p.ours != nil {
		err = errors.Join(err, p.ours.Drop())
	}
	return err
}

// note adds a measured cell.
func (p *runner) note(c *requests.Cell) {
	p.result.Requests = append(p.result.Requests, *c)
	_, _ = fmt.Fprintf(p.Log, "%s: %.0f/s, server %.0f µs\n", c, c.PerSecond, c.ServerMicros)
}
