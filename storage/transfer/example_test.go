package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
)

// Move a database to another file; for a server use postgres.Open as the target.
func Example() {
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, old := context.Background(), filepath.Join(dir, "old.db")
	if err := makeData(ctx, old); err != nil {
		log.Fatal(err)
	}
	if err := move(ctx, old, filepath.Join(dir, "new.db")); err != nil {
		log.Fatal(err)
	}
	_, err = sqlite.Open(ctx, old, nil)
	fmt.Println("the old one is not in use anymore:", errors.Is(err, formsvc.ErrMoved))
	// Output: the old one is not in use anymore: true
}

func makeData(ctx context.Context, path string) (err error) {
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	svc, err := formsvc.New(store, nil)
	if err != nil {
		return err
	}
	_, err = svc.Accounts.Create(ctx, "Town hall")
	return err
}

func move(ctx context.Context, old, to string) (err error) {
	asIs := &sqlite.Options{SkipMigrations: true} // and the keyring, if you use one
	from, err := sqlite.Open(ctx, old, asIs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	target, err := sqlite.Open(ctx, to, asIs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = transfer.Copy(ctx, from, target, nil)
	return err
}
