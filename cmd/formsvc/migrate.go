package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/formsvc/toolkit/storage"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Update the schema. \"serve\" does so too."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations of the schema."`
}

type migrateUpCmd struct{}

// Run migrates.
func (migrateUpCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	s, err := g.open(ctx, false)
	if err != nil {
		return err
	}
	std.note("The schema is up to date.")
	return s.Close()
}

type migrateStatusCmd struct{ output }

type migrationRecord struct {
	Version   int    `json:"version"`
	Name      string `json:"name"`
	AppliedAt stamp  `json:"appliedAt"`
}

// Run lists the migrations and changes nothing. It fails if none was applied, since that is probably the wrong database.
func (c *migrateStatusCmd) Run(ctx context.Context, g *global, std streams) error {
	list, err := g.migrations(ctx)
	if err != nil {
		return err
	}
	err = table[migrationRecord]{"VERSION\tNAME\tAPPLIED", func(m migrationRecord) string { return cells(m.Version, m.Name, m.AppliedAt) }}.
		print(c.output, std, nil, mapped(list, func(m storage.Migration) migrationRecord {
			return migrationRecord{m.Version, m.Name, stamp{m.AppliedAt}}
		})...)
	if !applied(list) {
		return errors.Join(err, g.noDatabase())
	}
	return err
}

// applied reports whether any migration was applied.
func applied(steps []storage.Migration) bool {
	return slices.ContainsFunc(steps, func(m storage.Migration) bool { return !m.AppliedAt.IsZero() })
}

// migrations lists the migrations of the schema. It doesn't create a missing SQLite file.
func (g *global) migrations(ctx context.Context) (list []storage.Migration, err error) {
	scheme, path, err := g.scheme()
	if err == nil && scheme == "sqlite" {
		if err = refuseUnfinished(path); err == nil {
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, g.noDatabase()
		}
	}
	if err != nil {
		return nil, err
	}
	s, err := g.openWith(ctx, nil, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Migrations(ctx)
}
