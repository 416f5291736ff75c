package main

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// meteredBlobs reports reads, listed keys and deletions to a meter.
type meteredBlobs struct {
	blobs

	read   func(bytes int64)
	listed func()
	gone   func()
}

// Open implements blobstore.Store.
func (b *meteredBlobs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	r, info, err := b.blobs.Open(ctx, key, offset, length)
	if err != nil || b.read == nil {
		return r, info, err
	}
	return &meteredReader{r, b.read}, info, nil
}

type meteredReader struct {
	io.ReadCloser

	read func(bytes int64)
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read(int64(n))
	return n, err
}

// List implements blobstore.Store.
func (b *meteredBlobs) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		for info, err := range b.blobs.List(ctx, prefix) {
			if b.listed != nil {
				b.listed()
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements blobstore.Store.
func (b *meteredBlobs) Delete(ctx context.Context, key string) error {
	if b.gone != nil {
		b.gone()
	}
	return b.blobs.Delete(ctx, key)
}

// Clean implements blobstore.Cleaner if the wrapped store does.
func (b *meteredBlobs) Clean(ctx context.Context, before time.Time) (int, error) {
	if c, ok := b.blobs.(blobstore.Cleaner); ok {
		return c.Clean(ctx, before)
	}
	return 0, nil
}

// meteredStore reports the number of redelivered deliveries to a meter.
func meteredStore(s backend, m *meter) backend {
	return around(s, func(ctx context.Context, method string, next func(context.Context) (int, error)) error {
		n, err := next(ctx)
		if method == "RedeliverFailed" {
			m.add(int64(n))
		}
		return err
	})
}
