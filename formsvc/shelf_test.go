package formsvc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
)

// A shelf is a blob store that dates blobs by the test's clock and can be made to fail.
type shelf struct {
	blobstore.Store
	now func() time.Time

	mu     sync.Mutex
	before func(method, key string) error // may be nil
	made   map[string]time.Time
}

// disturb sets the function that runs before calls; the call returns its error.
func (s *shelf) disturb(before func(method, key string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// fail makes calls of a method fail.
func (s *shelf) fail(method string, err error) {
	s.disturb(func(m, _ string) error {
		if m == method {
			return err
		}
		return nil
	})
}

func (s *shelf) enter(method, key string) error {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(method, key)
}

func (s *shelf) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := s.enter("Put", key); err != nil {
		return 0, err
	}
	n, err := s.Store.Put(ctx, key, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = make(map[string]time.Time)
	}
	s.made[key] = s.now()
	return n, err
}

func (s *shelf) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	if err := s.enter("Open", key); err != nil {
		return nil, blobstore.Info{}, err
	}
	return s.Store.Open(ctx, key, offset, length)
}

func (s *shelf) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	if err := s.enter("Stat", key); err != nil {
		return blobstore.Info{}, err
	}
	return s.Store.Stat(ctx, key)
}

func (s *shelf) Delete(ctx context.Context, key string) error {
	if err := s.enter("Delete", key); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

func (s *shelf) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	return func(yield func(blobstore.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			if err == nil {
				err = s.enter("List", info.Key)
			}
			s.mu.Lock()
			info.ModTime = s.made[info.Key]
			s.mu.Unlock()
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// keys returns the keys of all blobs except the marker, sorted.
func (s *shelf) keys(tb testing.TB) []string {
	tb.Helper()
	var list []string
	for info, err := range s.Store.List(context.Background(), "") {
		noError(tb, err)
		if info.Key != formsvc.MarkerKey {
			list = append(list, info.Key)
		}
	}
	slices.Sort(list)
	return list
}

// damage changes the stored content of a file.
func (s *shelf) damage(tb testing.TB, f *formsvc.File, edit func([]byte) []byte) {
	tb.Helper()
	ctx, key := context.Background(), formsvc.BlobKey(f.ID)
	body, _, err := s.Store.Open(ctx, key, 0, -1)
	noError(tb, err)
	content, err := io.ReadAll(body)
	wantError(tb, errors.Join(err, body.Close(), s.Store.Delete(ctx, key)), nil)
	if content = edit(content); content == nil {
		return
	}
	must(s.Store.Put(ctx, key, bytes.NewReader(content)))
}

// A fileWorld has a response to which files can be added.
type fileWorld struct {
	*world

	shelf    *shelf
	response formsvc.Response
}

func newFileWorld(tb testing.TB, edits ...func(*formsvc.Options)) *fileWorld {
	tb.Helper()
	s := &shelf{Store: memblob.New()}
	w := newWorld(tb, append(edits, func(o *formsvc.Options) { o.Blobs, s.now = s, o.Now })...)
	c := w.campaign()
	fw := &fileWorld{world: w, shelf: s, response: w.submitted(&c)}
	if err := w.svc.Files.Claim(w.ctx, nil); err != nil { // as programs do when they start
		tb.Fatal(err)
	}
	w.store.take()
	return fw
}

func (w *fileWorld) upload(in formsvc.FileInput) (formsvc.File, error) {
	return w.svc.Files.Upload(w.ctx, w.response.Key(), in)
}

func (w *fileWorld) uploaded(content []byte) formsvc.File {
	return must(w.upload(formsvc.FileInput{Name: "plan.pdf", ContentType: "application/pdf", Content: bytes.NewReader(content)}))
}

// read returns a part of a file as it can be read.
func (w *fileWorld) read(f *formsvc.File, offset, length int64) ([]byte, error) {
	r, err := w.svc.Files.Open(w.ctx, f, offset, length)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// nothing checks that there is no file, no blob and no event.
func (w *fileWorld) nothing(label string) {
	w.tb.Helper()
	page, err := w.svc.Files.List(w.ctx, w.response.Key(), formsvc.PageQuery{})
	if err != nil || page.Total != 0 || len(page.Items) != 0 {
		w.tb.Errorf("%s: files %v, %v", label, page.Items, err)
	}
	if keys := w.shelf.keys(w.tb); len(keys) > 0 {
		w.tb.Errorf("%s: blobs %q", label, keys)
	}
	if events := w.store.take(); len(events) > 0 {
		w.tb.Errorf("%s: events %v", label, eventTypes(events))
	}
}

func fileKey(f *formsvc.File) formsvc.FileKey {
	return formsvc.FileKey{AccountID: f.AccountID, ID: f.ID}
}

// pattern returns n bytes in which all blocks differ.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}
