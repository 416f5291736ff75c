package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// Store a record in a file, and read it after opening the file again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "formsvc")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "forms.db")

	for range 2 {
		store, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		svc, err := formsvc.New(store, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = svc.Accounts.Create(ctx, "Town hall")
		fmt.Println(err == nil, errors.Is(err, formsvc.ErrConflict))
		if err := store.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// true false
	// false true
}

// Migrate in a step of your own tool: for goose, goose.AddMigrationNoTxContext(step, nil). Your program then opens the
// database with SkipMigrations, too.
func ExampleStore_Migrate() {
	step := func(ctx context.Context, db *sql.DB) error {
		store, err := sqlite.OpenDB(ctx, db, &sqlite.Options{SkipMigrations: true})
		if err != nil {
			return err
		}
		return errors.Join(store.Migrate(ctx), store.Close())
	}

	dir, err := os.MkdirTemp("", "formsvc")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", sqlite.DSN(filepath.Join(dir, "app.db")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	fmt.Println(step(context.Background(), db))
	// Output:
	// <nil>
}
