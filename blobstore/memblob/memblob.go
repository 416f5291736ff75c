// Package memblob keeps blobs in memory, for tests and as the shortest implementation of
// [blobstore.Store]. Blobs are lost when the process ends.
package memblob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// A Store is a [blobstore.Store]. It keeps copies of the content. A Put holds everything that it
// has read; to limit that, limit the reader.
type Store struct {
	mu    sync.RWMutex
	blobs map[string]blob
}

var _ blobstore.Store = (*Store)(nil)

// A blob never changes.
type blob struct {
	content []byte
	at      time.Time
}

// New returns an empty Store.
func New() *Store { return &Store{blobs: make(map[string]blob)} }

// Put implements [blobstore.Store].
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := check(ctx, key); err != nil {
		return 0, fmt.Errorf("memblob: put: %w", err)
	}
	var content bytes.Buffer
	if _, err := content.ReadFrom(&source{ctx: ctx, r: r}); err != nil {
		return 0, fmt.Errorf("memblob: put: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("memblob: put: %w", err)
	}
	if _, taken := s.blobs[key]; taken {
		return 0, fmt.Errorf("memblob: put %s: %w", key, fs.ErrExist)
	}
	s.blobs[key] = blob{content.Bytes(), time.Now()}
	return int64(content.Len()), nil
}

// Open implements [blobstore.Store].
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	b, err := s.find(ctx, key)
	if err != nil {
		return nil, blobstore.Info{}, fmt.Errorf("memblob: open: %w", err)
	}
	if offset < 0 {
		return nil, blobstore.Info{}, fmt.Errorf("memblob: open %s: offset %d: %w", key, offset, fs.ErrInvalid)
	}
	content := b.content[min(offset, int64(len(b.content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	return &source{ctx: ctx, r: bytes.NewReader(content)}, b.info(key), nil
}

// Stat implements [blobstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	b, err := s.find(ctx, key)
	if err != nil {
		return blobstore.Info{}, fmt.Errorf("memblob: stat: %w", err)
	}
	return b.info(key), nil
}

// List implements [blobstore.Store]. It yields the blobs that exist when it begins, ordered by key.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		s.mu.RLock()
		blobs := maps.Clone(s.blobs)
		s.mu.RUnlock()
		for _, key := range slices.Sorted(maps.Keys(blobs)) {
			if ctx.Err() != nil {
				break
			}
			b := blobs[key]
			if strings.HasPrefix(key, prefix) && !yield(b.info(key), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(blobstore.Info{}, fmt.Errorf("memblob: list: %w", err))
		}
	}
}

// Delete implements [blobstore.Store]. It fails with fs.ErrNotExist if there is no such blob.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("memblob: delete: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[key]; !ok {
		return fmt.Errorf("memblob: delete %s: %w", key, fs.ErrNotExist)
	}
	delete(s.blobs, key)
	return nil
}

// check is called first by every method that takes a key.
func check(ctx context.Context, key string) error {
	if err := blobstore.CheckKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *Store) find(ctx context.Context, key string) (blob, error) {
	if err := check(ctx, key); err != nil {
		return blob{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[key]
	if !ok {
		return blob{}, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return b, nil
}

func (b *blob) info(key string) blobstore.Info {
	return blobstore.Info{Key: key, Size: int64(len(b.content)), ModTime: b.at}
}

// A source reads until its context ends or it is closed.
type source struct {
	ctx    context.Context
	r      io.Reader
	closed bool
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.closed {
		return 0, fs.ErrClosed
	}
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// Close implements io.Closer.
func (s *source) Close() error {
	s.closed = true
	return nil
}
