package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// store is what the commands need of either database.
type store interface {
	transfer.Store
	delivery.Queue
	Ping(ctx context.Context) error
	Migrations(ctx context.Context) ([]sqlite.Migration, error)
	RotateSecrets(ctx context.Context) (int, error)
	Restored(ctx context.Context) error
	CountFiles(ctx context.Context) (files int, bytes int64, err error)
	Close() error
}

// global are the flags that say what data to work on.
type global struct {
	DB         string `name:"db" placeholder:"DSN" help:"The database: sqlite:PATH or postgres://…. Defaults to sqlite:DATA/formsvc.db."`
	Blobs      string `placeholder:"URL" help:"Where uploaded files are kept: file:DIR, or s3://BUCKET[/PREFIX]?endpoint=…&region=… with the usual AWS variables. It belongs to one database, and that of another is refused: bytes that are a day old and that the database doesn't know are removed. Defaults to file:DATA/files."`
	Data       string `name:"data" placeholder:"DIR" default:"./formsvc-data" help:"Where the server keeps its data. Made if missing."`
	SecretKeys string `name:"secret-keys" placeholder:"KEYS" help:"The keys that secrets in the database are encrypted under, the first one for new secrets: 32 bytes each in hexadecimal or base64, separated by commas. Better set in the environment. Defaults to those in the file DATA/secret.keys, made if missing."`
}

// scheme splits the data source name of the flags, or the default one.
func (g *global) scheme() (scheme, rest string, err error) {
	if g.DB == "" {
		return "sqlite", filepath.Join(g.Data, "formsvc.db"), nil
	}
	scheme, rest, _ = strings.Cut(g.DB, ":")
	switch {
	case scheme == "sqlite" && rest == "":
		return "", "", usageError{errors.New("--db: sqlite: needs a path, such as sqlite:forms.db")}
	case scheme != "sqlite" && scheme != "postgres" && scheme != "postgresql":
		return "", "", usageError{fmt.Errorf("--db: want sqlite:PATH or postgres://…, got the scheme %q", scheme)}
	}
	return scheme, rest, nil
}

// open opens the database of the flags, with the keys for what is encrypted in
// it, and brings its schema up to date. With makeKeys, a file of keys is made if
// there is none.
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

// refuseLeftBehind makes sure that nobody begins anew on Postgres who means to go on there:
// it fails when the database of the flags is an empty Postgres one, and the one that a
// server without --db has is used. It leaves both as they are.
func (g *global) refuseLeftBehind(ctx context.Context) error {
	scheme, _, err := g.scheme()
	if err != nil || scheme == "sqlite" {
		return err
	}
	path := filepath.Join(g.Data, "formsvc.db")
	c, err := sqlite.Look(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && c == (sqlite.Contents{}) {
		return nil
	}
	empty, emptyErr := g.empty(ctx)
	switch {
	case emptyErr != nil || !empty:
		return emptyErr
	case err != nil:
		return fmt.Errorf("--db: the Postgres database is empty, and beside it is one that can't be read; name another --data to begin anew: %w", err)
	}
	return fmt.Errorf("--db: the Postgres database is empty, and what you have is in %s (campaigns: %d, responses: %d, files: %d).\n"+
		"  - To move it to Postgres: formsvc copy --from sqlite:%s --to postgres://…\n"+
		"  - To begin anew: name another directory with --data", path, c.Campaigns, c.Responses, c.Files, path)
}

// empty reports whether the database of the flags has no account. One with the schema of
// an earlier release is in use.
func (g *global) empty(ctx context.Context) (_ bool, err error) {
	s, err := g.openWith(ctx, nil, false)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps, err := s.Migrations(ctx)
	if err != nil {
		return false, err
	}
	applied := 0
	for _, step := range steps {
		if !step.AppliedAt.IsZero() {
			applied++
		}
	}
	if applied < len(steps) {
		return applied == 0, nil
	}
	accounts, err := s.Accounts(ctx)
	return len(accounts) == 0, err
}

// openExisting is open for a database that a server has made.
func (g *global) openExisting(ctx context.Context, makeKeys bool) (store, error) {
	if err := g.existing(ctx); err != nil {
		return nil, err
	}
	return g.open(ctx, makeKeys)
}

// withService runs a management command on the database of the flags, which there must
// be, beside a server that may be running on it.
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

// with is for commands that may make the database.
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
	worked, _, err := withFailpoints(s, opts)
	if err != nil {
		return err
	}
	svc, err := formsvc.New(worked, opts)
	if err != nil {
		return err
	}
	return do(svc.As(actor()))
}
