package sqlite_test

import (
	"context"
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
