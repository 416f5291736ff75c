package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// store is what the commands need of either database.
type store interface {
	formsvc.Store
	delivery.Queue
	Ping(ctx context.Context) error
	Migrate(ctx context.Context) error
	Migrations(ctx context.Context) ([]sqlite.Migration, error)
	Close() error
}

// open opens the database of the flags. It is migrated unless asMigrated is
// false.
func (g *global) open(ctx context.Context, migrate bool) (store, error) {
	dsn := g.DB
	if dsn == "" {
		if err := os.MkdirAll(g.Data, 0o700); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		dsn = "sqlite:" + filepath.Join(g.Data, "formsvc.db")
	}
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		if rest == "" {
			return nil, usageError{errors.New("--db: sqlite: needs a path, such as sqlite:forms.db")}
		}
		return sqlite.Open(ctx, rest, &sqlite.Options{SkipMigrations: !migrate})
	case "postgres", "postgresql":
		return postgres.Open(ctx, dsn, &postgres.Options{SkipMigrations: !migrate})
	}
	return nil, usageError{fmt.Errorf("--db: want sqlite:PATH or postgres://…, got the scheme %q", scheme)}
}

// service opens the database and puts the domain on it.
func (g *global) service(ctx context.Context) (store, *formsvc.Service, error) {
	s, err := g.open(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	svc, err := formsvc.New(s, nil)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, svc, nil
}

// withService runs a management command on the database of the flags, beside a
// server that may be running on it.
func (g *global) withService(ctx context.Context, do func(svc *formsvc.Service) error) (err error) {
	s, svc, err := g.service(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(svc)
}

// account finds an account by name or UUID.
func account(ctx context.Context, svc *formsvc.Service, name string) (formsvc.ID, error) {
	if id, ok := formsvc.ParseID(name); ok {
		a, err := svc.Accounts.Get(ctx, id)
		return a.ID, err
	}
	a, err := svc.Accounts.ByName(ctx, name)
	if errors.Is(err, formsvc.ErrNotFound) {
		return "", fmt.Errorf("there is no account %q: the first \"formsvc serve\" makes one named %q, "+
			"\"formsvc accounts create\" makes others", name, defaultAccount)
	}
	return a.ID, err
}
