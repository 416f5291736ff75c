//go:build failpoints

package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// store returns a store with failpoints around its writes and leases. The point after a unit is reached on success and,
// for methods that poll, only if there was something.
func (f *failpoints) store(s backend) backend {
	units := storeUnits()
	return around(s, func(ctx context.Context, method string, next func(context.Context) (int, error)) error {
		u, known := units[method]
		if !known {
			_, err := next(ctx)
			return err
		}
		f.reach(u, before)
		n, err := next(ctx)
		polled := slices.Contains([]string{"Ready", "Claim", "Failures", "ClaimDigests"}, method)
		if err == nil && (n > 0 || !polled) {
			f.reach(u, after)
		}
		return err
	})
}

// blobs returns a blob store with failpoints, which is a Cleaner if b is one. It returns nil for nil.
func (f *failpoints) blobs(b blobstore.Store) blobstore.Store {
	if b == nil {
		return nil
	}
	failing := &failingBlobs{Store: b, f: f}
	if cleaner, ok := b.(blobstore.Cleaner); ok {
		return cleaningBlobs{failing, cleaner}
	}
	return failing
}

// failingBlobs is a blob store with failpoints around its writes.
type failingBlobs struct {
	blobstore.Store

	f *failpoints
}

// Put also has a point after the whole content was read, unless it claims the blob store.
func (b *failingBlobs) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if key == formsvc.MarkerKey {
		return making(b.f, unitBlobClaim, func() (int64, error) { return b.Store.Put(ctx, key, r) })
	}
	r = &failingReader{r: r, f: b.f}
	return making(b.f, unitBlobPut, func() (int64, error) { return b.Store.Put(ctx, key, r) })
}

func (b *failingBlobs) Delete(ctx context.Context, key string) error {
	return b.f.do(unitBlobDelete, func() error { return b.Store.Delete(ctx, key) })
}

// cleaningBlobs is a failingBlobs that can remove leftovers of uploads.
type cleaningBlobs struct {
	*failingBlobs

	cleaner blobstore.Cleaner
}

func (b cleaningBlobs) Clean(ctx context.Context, before time.Time) (int, error) {
	return making(b.f, unitBlobClean, func() (int, error) { return b.cleaner.Clean(ctx, before) })
}

// A failingReader reaches a point once, when it was read to its end.
type failingReader struct {
	r     io.Reader
	f     *failpoints
	ended bool
}

func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if errors.Is(err, io.EOF) && !r.ended {
		r.ended = true
		r.f.reach(unitBlobPut, middle)
	}
	return n, err
}
