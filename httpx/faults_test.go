package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// A faultyStore fails or panics on demand. With err set, reads and writes of one response or webhook fail, and reads of the store's identity.
type faultyStore struct {
	formsvc.Store
	err    error
	panic  any
	calls  atomic.Int64           // of KeyByHash
	ask    atomic.Pointer[func()] // called once, before a call of KeyByHash
	used   atomic.Pointer[func()] // called once, before a call of QuotaUse
	hold   atomic.Pointer[func()] // called once, before a call of Response
	pages  func() error           // called before Responses
	create func()                 // called once, before CreateCampaign
	watch  func(context.Context) error

	mu    sync.Mutex
	asked []formsvc.ID // the accounts of calls of Response
}

func (s *faultyStore) fail() error {
	if s.panic != nil {
		panic(s.panic)
	}
	return s.err
}

// watched calls watch before some of the methods.
func (s *faultyStore) watched(ctx context.Context) error {
	if s.watch != nil {
		return s.watch(ctx)
	}
	return nil
}

// try calls a method unless the store fails.
func try[T any](s *faultyStore, call func() (T, error)) (result T, err error) {
	if err = s.fail(); err != nil {
		return result, err
	}
	return call()
}

func (s *faultyStore) KeyByHash(ctx context.Context, hash [32]byte) (formsvc.Key, error) {
	s.calls.Add(1)
	if ask := s.ask.Swap(nil); ask != nil {
		(*ask)()
	}
	return s.Store.KeyByHash(ctx, hash)
}

func (s *faultyStore) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	if used := s.used.Swap(nil); used != nil {
		(*used)()
	}
	return s.Store.QuotaUse(ctx, subject, since)
}

func (s *faultyStore) Identity(ctx context.Context) (formsvc.ID, error) {
	return try(s, func() (formsvc.ID, error) { return s.Store.Identity(ctx) })
}

func (s *faultyStore) Response(ctx context.Context, key formsvc.ResponseKey) (r formsvc.Response, err error) {
	if hold := s.hold.Swap(nil); hold != nil {
		(*hold)()
	}
	s.mu.Lock()
	s.asked = append(s.asked, key.AccountID)
	s.mu.Unlock()
	if err = s.watched(ctx); err != nil {
		return r, err
	}
	return try(s, func() (formsvc.Response, error) { return s.Store.Response(ctx, key) })
}

func (s *faultyStore) CreateCampaign(ctx context.Context, c formsvc.Campaign, change formsvc.Change) error {
	if create := s.create; create != nil {
		s.create = nil
		create()
	}
	return s.Store.CreateCampaign(ctx, c, change)
}

func (s *faultyStore) Responses(ctx context.Context, q formsvc.ResponseQuery) (page formsvc.Page[formsvc.Response], err error) {
	if s.pages != nil {
		if err = s.pages(); err != nil {
			return page, err
		}
	}
	return s.Store.Responses(ctx, q)
}

func (s *faultyStore) Webhook(ctx context.Context, key formsvc.WebhookKey) (formsvc.Webhook, error) {
	return try(s, func() (formsvc.Webhook, error) { return s.Store.Webhook(ctx, key) })
}

func (s *faultyStore) CreateResponse(ctx context.Context, r formsvc.Response, version int64, change formsvc.Change) error {
	if err := errors.Join(s.watched(ctx), s.fail()); err != nil {
		return err
	}
	return s.Store.CreateResponse(ctx, r, version, change)
}

func (s *faultyStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (r formsvc.Response, err error) {
	if err = s.watched(ctx); err != nil {
		return r, err
	}
	return try(s, func() (formsvc.Response, error) { return s.Store.UpdateResponse(ctx, key, decide) })
}

func (s *faultyStore) CreateWebhook(
	ctx context.Context, hook formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (formsvc.Webhook, bool, error) {
	if err := s.fail(); err != nil {
		return formsvc.Webhook{}, false, err
	}
	return s.Store.CreateWebhook(ctx, hook, limit, decide)
}

func (s *faultyStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	return try(s, func() (formsvc.Webhook, error) { return s.Store.UpdateWebhook(ctx, key, decide) })
}

// faultyBlobs fails or returns wrong bytes on demand. Set its fields while no request is in progress.
type faultyBlobs struct {
	blobstore.Store
	putErr, openErr, statErr error
	stored                   func(context.Context) error // after a Put
	opening                  func()                      // before an Open
	panic                    any
	flip                     int64 // the byte that is returned wrong, counted from 1
	short                    int64 // bytes after which a content ends, or fails with readErr
	readErr                  error

	mu    sync.Mutex
	opens [][2]int64 // offset and length of each opened range
	open  int        // bodies that weren't closed
}

func (s *faultyBlobs) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if s.putErr != nil {
		return 0, s.putErr
	}
	n, err := s.Store.Put(ctx, key, r)
	if err == nil && s.stored != nil {
		err = s.stored(ctx)
	}
	return n, err
}

func (s *faultyBlobs) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	if s.statErr != nil {
		return blobstore.Info{}, s.statErr
	}
	return s.Store.Stat(ctx, key)
}

func (s *faultyBlobs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	if s.opening != nil {
		s.opening()
	}
	if s.openErr != nil {
		return nil, blobstore.Info{}, s.openErr
	}
	body, info, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens = append(s.opens, [2]int64{offset, length})
	s.open++
	return &faultyBody{s: s, body: body, at: offset, flip: s.flip, short: s.short}, info, nil
}

// damage sets the faults, even while contents are open.
func (s *faultyBlobs) damage(flip, short int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flip, s.short = flip, short
}

type faultyBody struct {
	s           *faultyBlobs
	body        io.ReadCloser
	at          int64
	flip, short int64
}

func (b *faultyBody) Read(p []byte) (int, error) {
	if b.s.panic != nil {
		panic(b.s.panic)
	}
	if b.short > 0 {
		if b.at >= b.short {
			if b.s.readErr != nil {
				return 0, b.s.readErr
			}
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), b.short-b.at)]
	}
	n, err := b.body.Read(p)
	if at := b.flip - 1 - b.at; at >= 0 && at < int64(n) {
		p[at] ^= 1
	}
	b.at += int64(n)
	return n, err
}

func (b *faultyBody) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.s.open--
	return b.body.Close()
}

// endsWith is a reader that ends with another error than io.EOF: a body that is cut off, or that stalls until its deadline.
type endsWith struct {
	io.Reader
	err error
}

func (b endsWith) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

func cutOff(r io.Reader) io.ReadCloser   { return io.NopCloser(endsWith{r, io.ErrUnexpectedEOF}) }
func stalling(r io.Reader) io.ReadCloser { return io.NopCloser(endsWith{r, os.ErrDeadlineExceeded}) }

// An arriving body calls first before its first byte.
type arriving struct {
	io.Reader
	first func()
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.first != nil {
		a.first()
		a.first = nil
	}
	return a.Reader.Read(p)
}

// A watched reply calls a function before each write.
type watched struct {
	*httptest.ResponseRecorder
	do func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.do()
	return w.ResponseRecorder.Write(p)
}
