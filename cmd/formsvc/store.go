package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	Migrate(ctx context.Context) error
	MissingKeys(ctx context.Context) ([]string, error)
	Ping(ctx context.Context) error
	Migrations(ctx context.Context) ([]storage.Migration, error)
	RotateSecrets(ctx context.Context) (int, error)
	Restored(ctx context.Context) error
	CountFiles(ctx context.Context) (files int, bytes int64, err error)
	Close() error
}

// global are the flags that choose the data.
type global struct {
	Env environment `kong:"-"`

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
	s, err := sqlite.Open(ctx, rest, &sqlite.Options{SkipMigrations: !migrate, Keyring: ring})
	if err != nil {
		return nil, g.explainKeys(err)
	}
	return s, nil
}

// refuseLeftBehind prevents starting fresh on Postgres by mistake: it fails if the database of the flags is an empty
// Postgres one, but the default SQLite database in --data has data. It changes neither.
func (g *global) refuseLeftBehind(ctx context.Context) error {
	scheme, _, err := g.scheme()
	if err != nil || scheme == "sqlite" {
		return err
	}
	path := filepath.Join(g.Data, "formsvc.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if accounts, _, err := g.used(ctx); err != nil || accounts {
		return err
	}
	_, left, err := (&global{DB: "sqlite:" + path}).used(ctx)
	if err != nil {
		return fmt.Errorf("--db: the Postgres database is empty, and the SQLite database in --data can't be read; set another --data to start fresh: %w", err)
	}
	if !left {
		return nil
	}
	return fmt.Errorf("--db: the Postgres database is empty, but there are campaigns in %s.\n"+
		"  - To move them to Postgres: formsvc copy --from sqlite:%s --to postgres://…\n"+
		"  - To start fresh: set --data to another directory", path, path)
}

// used reports whether the database of the flags has accounts, and whether these have campaigns. It doesn't migrate the
// database; one that another release made counts as used.
func (g *global) used(ctx context.Context) (accounts, campaigns bool, err error) {
	s, err := g.openWith(ctx, nil, false)
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps, err := s.Migrations(ctx)
	if err != nil || !applied(steps) {
		return false, false, err
	}
	if slices.ContainsFunc(steps, func(m storage.Migration) bool { return m.AppliedAt.IsZero() }) {
		return true, true, nil
	}
	list, err := s.Accounts(ctx)
	for i := range list {
		page, err := s.Campaigns(ctx, formsvc.CampaignQuery{AccountID: list[i].ID, Page: formsvc.PageQuery{Limit: 1}})
		if err != nil || len(page.Items) > 0 {
			return true, true, err
		}
	}
	return len(list) > 0, false, err
}

// openExisting is open for a database that a server has created.
func (g *global) openExisting(ctx context.Context, makeKeys bool) (store, error) {
	if err := g.existing(ctx); err != nil {
		return nil, err
	}
	return g.open(ctx, makeKeys)
}

// withService runs a management command on the database of the flags, which must exist. A server may be running on it.
func (g *global) withService(ctx context.Context, do func(svc *formsvc.Service) error) error {
	if err := g.existing(ctx); err != nil {
		return err
	}
	return g.with(ctx, false, nil, do)
}

// withSecrets is withService for commands that write secrets.
func (g *global) withSecrets(ctx context.Context, opts *formsvc.Options, do func(svc *formsvc.Service) error) error {
	if err := g.existing(ctx); err != nil {
		return err
	}
	return g.with(ctx, true, opts, do)
}

// with is for commands that may create the database.
func (g *global) with(
	ctx context.Context, makeKeys bool, opts *formsvc.Options, do func(svc *formsvc.Service) error,
) (err error) {
	s, err := g.open(ctx, makeKeys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return onStore(s, opts, do)
}

// onStore calls do with a service on the store.
func onStore(s backend, opts *formsvc.Options, do func(svc *formsvc.Service) error) error {
	var o formsvc.Options
	if opts != nil {
		o = *opts
	}
	o.MaxKeys, o.MaxCampaigns = new(int), new(int) // the limits are for clients of the server
	svc, err := formsvc.New(s, &o)
	if err != nil {
		return err
	}
	return do(svc.As(actor()))
}
