package blobstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/memblob"
)

// Write a blob once, and read any part of it. All stores work like this.
func ExampleStore() {
	ctx := context.Background()
	var store blobstore.Store = memblob.New() // or fileblob.Open, or s3blob.New

	n, err := store.Put(ctx, "plans/roof", strings.NewReader("a flat roof"))
	fmt.Println(n, err)
	_, err = store.Put(ctx, "plans/roof", strings.NewReader("a pointed one"))
	fmt.Println(errors.Is(err, fs.ErrExist))

	body, info, err := store.Open(ctx, "plans/roof", 2, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	part, err := io.ReadAll(body)
	fmt.Printf("%q of %d bytes %v\n", part, info.Size, errors.Join(err, body.Close()))
	// Output:
	// 11 <nil>
	// true
	// "flat" of 11 bytes <nil>
}

// Valid keys work in every store and on every file system.
func ExampleCheckKey() {
	for _, key := range []string{"c4/plan.pdf", "../etc/passwd", "a plan.pdf"} {
		fmt.Println(key, blobstore.CheckKey(key) == nil)
	}
	// Output:
	// c4/plan.pdf true
	// ../etc/passwd false
	// a plan.pdf false
}
