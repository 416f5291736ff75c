package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"

	"github.com/pocketbase/dbx"
	pb "github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

// servePocketbase runs the PocketBase process with its own settings, except for those that formbench sets.
func servePocketbase(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	var cfg pocketbase.Config
	if err := decoder.Decode(&cfg); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	app := newPocketbase(&cfg)
	token, err := prepare(app)
	if err != nil {
		return errors.Join(err, app.ResetBootstrapState())
	}
	stopProfile, err := worker.StartProfile(cfg.Profile)
	if err != nil {
		return errors.Join(err, app.ResetBootstrapState())
	}
	return errors.Join(listen(ctx, app, token, out), stopProfile())
}

// listen serves until the context ends, and reports the address.
func listen(ctx context.Context, app core.App, token string, out io.Writer) error {
	app.OnServe().BindFunc(func(e *core.ServeEvent) (err error) {
		if e.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		e.InstallerFunc = nil
		if err := e.Next(); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(pocketbase.Ready{Addr: e.Listener.Addr().String(), Token: token})
	})
	served := make(chan error, 1)
	go func() { served <- apis.Serve(app, apis.ServeConfig{}) }()
	select {
	case err := <-served:
		return errors.Join(err, app.ResetBootstrapState())
	case <-ctx.Done():
	}
	event := &core.TerminateEvent{App: app}
	err := app.OnTerminate().Trigger(event, func(e *core.TerminateEvent) error { return e.App.ResetBootstrapState() })
	return errors.Join(err, <-served)
}

func newPocketbase(cfg *pocketbase.Config) *pb.PocketBase {
	settings := pb.Config{DefaultDataDir: cfg.Dir, HideStartBanner: true}
	if cfg.Full {
		settings.DBConnect = connectFull
	}
	app := pb.NewWithConfig(settings)
	// Otherwise it logs that it was tested with another version of the SQLite driver.
	app.OnBootstrap().Unbind(pb.ModerncDepsCheckHookId)
	return app
}

// connectFull opens a database like PocketBase, but acknowledged writes are on the disk. The database with its request
// log keeps PocketBase's settings.
func connectFull(path string) (*dbx.DB, error) {
	if filepath.Base(path) != pocketbase.Database {
		return core.DefaultDBConnect(path)
	}
	const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)" +
		"&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)"
	return dbx.Open("sqlite", path+pragmas)
}

// superuser is the account that has the token. Nobody signs in with the password.
const superuser = "bench@example.com"

// prepare opens the databases, creates missing collections, and returns a token.
func prepare(app core.App) (string, error) {
	if err := app.Bootstrap(); err != nil {
		return "", err
	}
	if err := app.RunAllMigrations(); err != nil {
		return "", err
	}
	if _, err := app.FindCollectionByNameOrId(pocketbase.Files); err != nil {
		if err := app.RunInTransaction(makeCollections); err != nil {
			return "", err
		}
	}
	user, err := app.FindAuthRecordByEmail(core.CollectionNameSuperusers, superuser)
	if err != nil {
		user, err = makeSuperuser(app)
	}
	if err != nil {
		return "", err
	}
	return user.NewAuthToken()
}

func makeSuperuser(app core.App) (*core.Record, error) {
	superusers, err := app.FindCollectionByNameOrId(core.CollectionNameSuperusers)
	if err != nil {
		return nil, err
	}
	user := core.NewRecord(superusers)
	user.SetEmail(superuser)
	user.SetPassword(rand.Text())
	if err := app.Save(user); err != nil {
		return nil, fmt.Errorf("make a superuser: %w", err)
	}
	return user, nil
}
