// Command follow-events handles events in Go, beside webhooks. For each new response, of
// any tenant, it inserts a task. The task and the position in the feed commit together, so
// each response gets exactly one task, even after a crash.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"os/signal"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := sql.Open("sqlite", sqlite.DSN("app.db")) // the host application's database
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.OpenDB(ctx, db, nil)
	if err != nil {
		log.Fatal(err)
	}
	forms, err := formsvc.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(setUp(ctx, db), follow(ctx, db, forms)); err != nil {
		log.Fatal(err)
	}
}

func setUp(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `
CREATE TABLE IF NOT EXISTS tasks (account TEXT NOT NULL, response TEXT NOT NULL, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS followed (name TEXT PRIMARY KEY, position TEXT NOT NULL);
INSERT INTO followed VALUES ('tasks', '') ON CONFLICT DO NOTHING`)
	return err
}

// follow creates tasks until ctx ends.
func follow(ctx context.Context, db *sql.DB, forms *formsvc.Service) error {
	var after formsvc.Cursor
	if err := db.QueryRowContext(ctx, "SELECT position FROM followed WHERE name = 'tasks'").Scan(&after); err != nil {
		return err
	}
	query := formsvc.EventQuery{Types: []webhook.EventType{webhook.ResponseCreated}, After: after}
	return forms.Events.FollowAll(ctx, query, func(ctx context.Context, events []formsvc.Event, next formsvc.Cursor) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit
		for _, e := range events {
			event, err := webhook.ParseEvent(e.Payload) // the body that webhooks receive
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO tasks VALUES (?, ?, ?)", string(e.AccountID), string(e.ResponseID),
				"answer "+event.Data.Response.User.Email); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "UPDATE followed SET position = ? WHERE name = 'tasks'", string(next)); err != nil {
			return err
		}
		return tx.Commit()
	})
}
