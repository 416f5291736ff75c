package memblob_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/formsvc/toolkit/blobstore/memblob"
)

// What a program that is tested would keep on a disk is in memory, to be looked at.
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
