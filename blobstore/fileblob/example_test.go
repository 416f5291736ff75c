package fileblob_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formsvc/toolkit/blobstore/fileblob"
)

// A blob is a file with the same name, which any program can read.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	store, err := fileblob.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	if _, err := store.Put(ctx, "c4/plan.txt", strings.NewReader("a flat roof")); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "c4", "plan.txt"))
	fmt.Println(string(text), err)
	// Output: a flat roof <nil>
}
