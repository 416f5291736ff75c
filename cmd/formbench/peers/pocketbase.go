package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pocketbase/dbx"
	pb "github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
)

// servePocketbase runs PocketBase in an empty directory, with its own settings and a synchronous database if full is true.
func servePocketbase(ctx context.Context, dir string, full bool) error {
	settings := pb.Config{DefaultDataDir: dir, HideStartBanner: true}
	if full {
		settings.DBConnect = connectFull
	}
	app := pb.NewWithConfig(settings)
	// Otherwise it logs that it was tested with another version of the SQLite driver.
	app.OnBootstrap().Unbind(pb.ModerncDepsCheckHookId)
	if err := prepare(app); err != nil {
		return errors.Join(err, app.ResetBootstrapState())
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) (err error) {
		if e.Listener, err = listen(ctx); err != nil {
			return err
		}
		e.InstallerFunc = nil
		err = e.Next()
		if err == nil {
			report(e.Listener)
		}
		return err
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

// connectFull opens a database like PocketBase, but acknowledged writes are on the disk. The database with its request
// log keeps PocketBase's settings.
func connectFull(path string) (*dbx.DB, error) {
	if filepath.Base(path) != "data.db" {
		return core.DefaultDBConnect(path)
	}
	const pragmas = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)" +
		"&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)"
	return dbx.Open("sqlite", path+pragmas)
}

// prepare opens the databases and creates collections that anyone may use.
func prepare(app core.App) error {
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	responses := core.NewBaseCollection("responses")
	responses.Fields.Add(&core.TextField{Name: "reference"}, &core.TextField{Name: "status"}, &core.JSONField{Name: "user"},
		&core.JSONField{Name: "responses"}, &core.TextField{Name: "campaign"})
	responses.AddIndex("idx_responses_campaign", false, "campaign", "")
	files := core.NewBaseCollection("files")
	const maxFile = 2 << 30 // the default is 5 MB
	files.Fields.Add(&core.FileField{Name: "file", MaxSelect: 1, MaxSize: maxFile})
	for _, c := range []*core.Collection{responses, files} {
		c.Fields.Add(&core.AutodateField{Name: "created", OnCreate: true}, &core.AutodateField{Name: "updated", OnCreate: true, OnUpdate: true})
		c.CreateRule, c.ListRule, c.ViewRule = types.Pointer(""), types.Pointer(""), types.Pointer("")
		if err := app.Save(c); err != nil {
			return fmt.Errorf("collection %s: %w", c.Name, err)
		}
	}
	return nil
}
