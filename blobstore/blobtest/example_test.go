package blobtest_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/blobtest"
	"github.com/formsvc/toolkit/blobstore/memblob"
)

// A counting store counts the bytes that it stores.
type counting struct {
	blobstore.Store
	bytes *atomic.Int64
}

func (c counting) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	n, err := c.Store.Put(ctx, key, r)
	c.bytes.Add(n)
	return n, err
}

// testCounting tests that the wrapped store still follows the contract. In your test file, name it
// TestStore.
func testCounting(t *testing.T) {
	open := func(testing.TB) blobstore.Store { return counting{memblob.New(), new(atomic.Int64)} }
	blobtest.Run(t, open, blobtest.Options{})
}

func ExampleRun() {
	var t *testing.T // of go test
	testCounting(t)
}
