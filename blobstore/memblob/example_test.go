package memblob_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/formsvc/toolkit/blobstore/memblob"
)

// Keep the files of a program under test in memory, and inspect them.
func Example() {
	ctx := context.Background()
	store := memblob.New() // the Blobs of formsvc.Options
	for _, key := range []string{"c4/plan.txt", "c4/roof.txt"} {
		if _, err := store.Put(ctx, key, strings.NewReader("a flat roof")); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := store.Delete(ctx, "c4/roof.txt"); err != nil {
		fmt.Println(err)
		return
	}
	for blob, err := range store.List(ctx, "") {
		fmt.Println(blob.Key, blob.Size, err)
	}
	// Output: c4/plan.txt 11 <nil>
}
