package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// The same program works with each store.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "formsvc")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	file, err := sqlite.Open(ctx, filepath.Join(dir, "forms.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = file.Close() }()
	for _, store := range []formsvc.Store{memory.New(), file} {
		svc, err := formsvc.New(store, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = svc.Accounts.ByName(ctx, "nobody")
		fmt.Println(errors.Is(err, formsvc.ErrNotFound))
	}
	// Output:
	// true
	// true
}
