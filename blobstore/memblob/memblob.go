// Package memblob keeps blobs in memory, for tests and as the shortest implementation of
// [blobstore.Store]. Blobs are lost when the process ends.
package memblob

import (
	"bytes"
	"cmp"
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
func (s *Store) Put(ctx context.Context, key string, r io.Reader) (_ int64, err error) {
	defer wrap(&err, "put", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return 0, err
	}
	var content bytes.Buffer
	if _, err := content.ReadFrom(&source{ctx: ctx, r: r}); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if _, taken := s.blobs[key]; taken {
		return 0, fs.ErrExist
	}
	s.blobs[key] = blob{content.Bytes(), time.Now()}
	return int64(content.Len()), nil
}

// Open implements [blobstore.Store].
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (_ io.ReadCloser, _ blobstore.Info, err error) {
	defer wrap(&err, "open", key)
	b, err := s.find(ctx, key)
	if err != nil {
		return nil, blobstore.Info{}, err
	}
	if offset < 0 {
		return nil, blobstore.Info{}, fmt.Errorf("offset %d: %w", offset, fs.ErrInvalid)
	}
	content := b.content[min(offset, int64(len(b.content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	return &source{ctx: ctx, r: bytes.NewReader(content)}, b.info(key), nil
}

// Stat implements [blobstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (_ blobstore.Info, err error) {
	defer wrap(&err, "stat", key)
	b, err := s.find(ctx, key)
	if err != nil {
		return blobstore.Info{}, err
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
			wrap(&err, "list", prefix)
			yield(blobstore.Info{}, err)
		}
	}
}

// Delete implements [blobstore.Store]. It fails with fs.ErrNotExist if there is no such blob.
func (s *Store) Delete(ctx context.Context, key string) (err error) {
	defer wrap(&err, "delete", key)
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[key]; !ok {
		return fs.ErrNotExist
	}
	delete(s.blobs, key)
	return nil
}

func (s *Store) find(ctx context.Context, key string) (blob, error) {
	if err := cmp.Or(blobstore.CheckKey(key), ctx.Err()); err != nil {
		return blob{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[key]
	if !ok {
		return blob{}, fs.ErrNotExist
	}
	return b, nil
}

// wrap adds what a method does to its error.
func wrap(err *error, what, name string) {
	if *err != nil {
		*err = fmt.Errorf("memblob: %s %q: %w", what, name, *err)
	}
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
