package s3blob

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// buffers provides a fixed number of buffers. Unused ones are left to the garbage collector, so
// that an idle store holds no memory.
type buffers struct {
	held chan struct{} // has an element for every buffer in use
	size int
	free sync.Pool // of *[]byte
}

func newBuffers(size, n int) *buffers {
	b := &buffers{held: make(chan struct{}, n), size: size}
	b.free.New = func() any {
		buf := make([]byte, size)
		return &buf
	}
	return b
}

// get waits for a buffer, up to the time limit. The caller that waits longest is served first.
func (b *buffers) get(ctx context.Context, limit time.Duration) (*[]byte, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case b.held <- struct{}{}:
		return b.free.Get().(*[]byte), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("%w: all %d buffers are in use", blobstore.ErrUnavailable, cap(b.held))
	}
}

// tryGet returns a buffer, or nil if none is free or another caller waits for one.
func (b *buffers) tryGet() *[]byte {
	select {
	case b.held <- struct{}{}:
		return b.free.Get().(*[]byte)
	default:
		return nil
	}
}

func (b *buffers) put(buf *[]byte) {
	b.free.Put(buf)
	<-b.held
}
