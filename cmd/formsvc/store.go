package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// store is what commands need of a database.
type store interface {
	formsvc.Store
	delivery.Queue
	storage.Database
	Migrations(ctx context.Context) ([]storage.Migration, error)
	Restored(ctx context.Context) error
	Close() error
}

// global are the flags that choose the data.
type global struct {
	Env      environment   `kong:"-"`
	patience time.Duration // how long to wait for another process that writes to a SQLite database; 0: as a server does

	DB         string `name:"db" placeholder:"DSN" help:"The database: sqlite:PATH or postgres://…. Defaults to sqlite:DATA/formsvc.db."`
	Blobs      string `placeholder:"URL" help:"Where uploaded files are stored: file:DIR, or s3://BUCKET[/PREFIX]?endpoint=…&region=… with the usual AWS variables. Each database needs its own place, and the place of another one is refused. Files that are a day old and unknown to the database are removed. Defaults to file:DATA/files."`
	Data       string `name:"data" placeholder:"DIR" default:"./formsvc-data" help:"Data directory of the server. Created if missing."`
	SecretKeys string `name:"secret-keys" placeholder:"KEYS" help:"Keys that encrypt the secrets in the database, the first one for new secrets: 32 bytes each in hexadecimal or base64, separated by commas. Better set in the environment. Defaults to the file DATA/secret.keys, created if missing."`
}

// scheme splits the data source name of the flags, or of the default.
func (g *global) scheme() (scheme, rest string, err error) {
	if g.DB == "" {
		return "sqlite", filepath.Join(g.Data, "formsvc.db"), nil
	}
	return schemeOf("--db", g.DB)
}

// schemeOf splits the data source name that a flag gives.
func schemeOf(flag, dsn string) (scheme, rest string, err error) {
	scheme, rest, _ = strings.Cut(dsn, ":")
	switch {
	case scheme == "sqlite" && rest == "":
		return "", "", usageError{fmt.Errorf("%s: sqlite: needs a path, such as sqlite:forms.db", flag)}
	case scheme != "sqlite" && scheme != "postgres" && scheme != "postgresql":
		return "", "", usageError{fmt.Errorf("%s: unknown scheme %q; use sqlite:PATH or postgres://…", flag, scheme)}
	}
	return scheme, rest, nil
}

// open opens the database of the flags with its encryption keys, and migrates it. With makeKeys, a missing key file is
// created.
func (g *global) open(ctx context.Context, makeKeys bool) (store, error) {
	if _, _, err := g.scheme(); err != nil {
		return nil, err
	}
	ring, err := g.keys(makeKeys)
	if err != nil {
		return nil, err
	}
	return g.openWith(ctx, ring, true)
}

func (g *global) openWith(ctx context.Context, ring *keyring.Keyring, migrate bool) (store, error) {
	scheme, rest, err := g.scheme()
	if err != nil {
		return nil, err
	}
	if scheme != "sqlite" {
		s, err := postgres.Open(ctx, g.DB, &postgres.Options{SkipMigrations: !migrate, Keyring: ring})
		if err != nil {
			return nil, g.explainKeys(err)
		}
		return s, nil
	}
	if g.DB == "" {
		if err := os.MkdirAll(g.Data, 0o700); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
	}
	if err := refuseUnfinished(rest); err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, rest, &sqlite.Options{SkipMigrations: !migrate, Keyring: ring, BusyTimeout: g.patience})
	if err != nil {
		return nil, g.explainKeys(err)
	}
	return s, nil
}

// refuseLeftBehind prevents starting fresh on Postgres by mistake: it fails if the Postgres database of the flags has no
// accounts, but --data has a SQLite database. It changes neither.
func (g *global) refuseLeftBehind(ctx context.Context) (err error) {
	scheme, _, err := g.scheme()
	path := filepath.Join(g.Data, "formsvc.db")
	if _, statErr := os.Stat(path); err != nil || scheme == "sqlite" || statErr != nil {
		return err
	}
	s, err := g.openWith(ctx, nil, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	if applied(steps) {
		pending := func(m storage.Migration) bool { return m.AppliedAt.IsZero() }
		if slices.ContainsFunc(steps, pending) { // another release uses it
			return nil
		}
		if list, err := s.Accounts(ctx); err != nil || len(list) > 0 {
			return err
		}
	}
	return fmt.Errorf("--db: the Postgres database is empty, but there is a SQLite database %s.\n"+
		"  - To move its data to Postgres: formsvc copy --from sqlite:%s --to postgres://…\n"+
		"  - To start fresh: set --data to another directory", path, path)
}

// existing rejects a database that no server has created. So a command in the wrong directory neither creates an empty one
// nor reports that there is no data.
func (g *global) existing(ctx context.Context) error {
	steps, err := g.migrations(ctx)
	if err != nil {
		return err
	}
	if !applied(steps) {
		return g.noDatabase()
	}
	return nil
}

// noDatabase returns an error that says where the database was expected.
func (g *global) noDatabase() error {
	scheme, path, err := g.scheme()
	if err != nil {
		return err
	}
	place := "the database has no tables of formsvc"
	if scheme == "sqlite" {
		place = "there is no database at " + absolute(path)
		if _, err := os.Stat(path); err == nil {
			place = "the database " + absolute(path) + " has no tables of formsvc"
		}
	}
	return fmt.Errorf("%s: set --data or --db to another place, or create one with \"formsvc serve\"", place)
}

// absolute returns a path that doesn't depend on the current directory, for messages.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// A need is what a management command needs beside the rows of an existing database.
type need struct {
	formsvc.Options

	create  bool // the database may be missing, and is created
	secrets bool // writes secrets: a missing key file is created
	files   bool // the blob store of the flags
}

// commandPatience is as long as a server gives a request.
const commandPatience = 30 * time.Second

// explainBusy adds to an error about a SQLite database that another process writes to which process that is.
func (g *global) explainBusy(err error) error {
	const busy, primary = 5, 0xff // SQLITE_BUSY, the mask of its extended codes
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Code()&primary != busy {
		return err
	}
	_, path, _ := g.scheme()
	who := "another process"
	if pid := writerOf(path); pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	return fmt.Errorf("the database %s is locked: %s is writing to it. Try again when it has finished, or end it: %w", absolute(path), who, err)
}

// with runs a management command on the data of the flags. A server may be running on it.
func (g *global) with(ctx context.Context, n need, do func(svc *formsvc.Service) error) (err error) {
	g.patience = cmp.Or(g.patience, commandPatience)
	_, _, err = g.blobURL() // an invalid flag is the first error
	if err == nil && !n.create {
		err = g.existing(ctx)
	}
	if err == nil && n.files {
		n.Blobs, err = g.existingFiles()
	}
	if err != nil {
		return err
	}
	s, err := g.open(ctx, n.secrets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	n.MaxKeys, n.MaxCampaigns = -1, -1 // the limits are for clients of the server
	svc, err := formsvc.New(s, &n.Options)
	if err != nil {
		return err
	}
	return g.explainBlobs(do(svc.As(actor())))
}

// existingFiles opens the blob store of the flags, but rejects a directory that no server has created. The default one beside an
// existing database may be missing.
func (g *global) existingFiles() (blobstore.Store, error) {
	dir, s3, err := g.blobURL()
	if err == nil && s3 == nil && g.DB+g.Blobs != "" {
		_, err = os.Stat(dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return g.openBlobs()
	}
	return nil, fmt.Errorf("there is no directory of uploaded files at %s: set --blobs to another place, or create one with \"formsvc serve\"", absolute(dir))
}
