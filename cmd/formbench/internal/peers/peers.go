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
)

// A runner is the parts of a run that compare with peers.
type runner struct {
	*bench.Bench
	template string // directory of PocketBase with collections, and nothing in them
	full     string // the same with -peer-fill responses
	ours     *database.Database
	world    database.World // of the filled database of ours
}

// Run measures them.
func Run(ctx context.Context, b *bench.Bench) (err error) {
	p := &runner{Bench: b}
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
