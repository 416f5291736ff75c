package storagetest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/storagetest"
)

// A counting store counts the responses that it has stored.
type counting struct {
	storagetest.Store
	responses *atomic.Int64
}

func (c counting) CreateResponse(ctx context.Context, r formsvc.Response, version int64, change formsvc.Change) error {
	err := c.Store.CreateResponse(ctx, r, version, change)
	if err == nil {
		c.responses.Add(1)
	}
	return err
}

// testCounting checks a wrapped store against the contract. In a test file of yours it is called TestStore.
func testCounting(t *testing.T) {
	open := func(t testing.TB) storagetest.Store {
		s := memory.New()
		t.Cleanup(func() { _ = s.Close() })
		return counting{s, new(atomic.Int64)}
	}
	storagetest.Run(t, open, storagetest.Options{})
}

func ExampleRun() {
	var t *testing.T // from go test
	testCounting(t)
}
