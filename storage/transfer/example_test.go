package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
)

// Move a database to another file; the target can also be postgres://….
func Example() {
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, old := context.Background(), filepath.Join(dir, "old.db")
	store, err := sqlite.Open(ctx, old, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Close(); err != nil { // as the server does when it stops
		fmt.Println(err)
		return
	}
	if _, err := transfer.Copy(ctx, "sqlite:"+old, "sqlite:"+filepath.Join(dir, "new.db"), nil); err != nil {
		fmt.Println(err)
		return
	}
	_, err = sqlite.Open(ctx, old, nil)
	fmt.Println("the old one is not in use anymore:", errors.Is(err, formsvc.ErrMoved))
	// Output: the old one is not in use anymore: true
}
