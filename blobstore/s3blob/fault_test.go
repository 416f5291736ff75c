//go:build long

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

// impatient returns options for tests in which a server never responds.
func impatient() *s3blob.Options { return &s3blob.Options{Timeout: 300 * time.Millisecond} }

// everyMethod returns the error of each method.
func everyMethod(ctx context.Context, store *s3blob.Store) map[string]error {
	calls := map[string]func() error{
		"Put": func() error {
			_, err := store.Put(ctx, "new", strings.NewReader("content"))
			return err
		},
		"Put of a large one": func() error {
			_, err := store.Put(ctx, "large", zeros(6*mib))
			return err
		},
		"Open":   func() error { _, err := read(ctx, store, "old"); return err },
		"Stat":   func() error { _, err := store.Stat(ctx, "old"); return err },
		"List":   func() error { _, err := list(ctx, store); return err },
		"Delete": func() error { return store.Delete(ctx, "old") },
		"Clean":  func() error { _, err := store.Clean(ctx, time.Now()); return err },
	}
	errs := make(map[string]error)
	var mu sync.Mutex
	var running sync.WaitGroup
	for name, call := range calls {
		running.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	running.Wait()
	return errs
}

func wantUnavailable(t *testing.T, errs map[string]error) {
	t.Helper()
	for method, err := range errs {
		if !errors.Is(err, blobstore.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", method, err)
		}
		for _, other := range []error{
			fs.ErrNotExist, fs.ErrExist, blobstore.ErrNoSpace, context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF,
		} {
			if errors.Is(err, other) {
				t.Errorf("%s: %v, which is also %q", method, err, other)
			}
		}
	}
}

func TestServerIsDown(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	store := newStore(t, server, nil)
	mustPut(t, store, "old", []byte("content"))
	server.Stop()
	wantUnavailable(t, everyMethod(t.Context(), store))
	server.Restart()
	wantContent(t, store, "old", []byte("content"))
	mustPut(t, store, "large", pattern(6*mib))
}

func TestServerHangs(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	mustPut(t, newStore(t, server, nil), "other", []byte("content"))
	server.Suspend()
	wantUnavailable(t, everyMethod(t.Context(), newStore(t, server, impatient())))
	server.Resume()
	wantContent(t, newStore(t, server, nil), "other", []byte("content"))
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	bucket := must(s3blob.ParseURL(server.URL(), nil))
	missing := bucket
	missing.Name = "no-such-bucket"
	for name, c := range map[string]struct {
		bucket      s3blob.Bucket
		credentials s3blob.Credentials
	}{
		"wrong secret":   {bucket, s3blob.StaticCredentials(server.AccessKey, "wrong-secret", "")},
		"wrong key":      {bucket, s3blob.StaticCredentials("nobody", server.SecretKey, "")},
		"missing bucket": {missing, s3blob.StaticCredentials(server.AccessKey, server.SecretKey, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := must(s3blob.New(c.bucket, c.credentials, nil))
			errs := everyMethod(t.Context(), store)
			wantUnavailable(t, errs)
			for method, err := range errs {
				if err != nil && (strings.Contains(err.Error(), "wrong-secret") || strings.Contains(err.Error(), server.SecretKey)) {
					t.Errorf("%s tells the secret: %v", method, err)
				}
			}
		})
	}
}

// A hook calls do before the byte at is read.
type hook struct {
	io.Reader

	at, read int
	do       func() error
}

func (h *hook) Read(p []byte) (int, error) {
	if h.do != nil && h.read >= h.at {
		do := h.do
		h.do = nil
		if err := do(); err != nil {
			return 0, err
		}
	}
	n, err := h.Reader.Read(p[:min(len(p), 64<<10)])
	h.read += n
	return n, err
}

func TestServerHangsDuringPut(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for _, at := range []int{0, 3 * mib, 8 * mib, 18 * mib} {
		// A part may take 20 s longer than other requests, so the context ends first.
		store := newStore(t, server, impatient())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := store.Put(ctx, "blob", &hook{bytes.NewReader(pattern(20 * mib)), at, 0, func() error { server.Suspend(); return nil }})
		cancel()
		if err == nil {
			t.Errorf("a server that hangs from byte %d on: no error", at)
		}
		if !errors.Is(err, blobstore.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a server that hangs from byte %d on: %v", at, err)
		}
		if held, _ := store.Held(); held != 0 {
			t.Errorf("%d buffers are not given back", held)
		}
		server.Resume()
		// Requests that the server received while it could not respond may have taken effect.
		store = newStore(t, server, nil)
		if _, err := store.Clean(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		noError(t, store.Delete(t.Context(), "blob"))
	}
	wantNothing(t, server)
}

// A read fails if the server hangs or dies, and so does another one.
func TestServerFailsDuringRead(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*s3test.Server){"hangs": (*s3test.Server).Suspend, "dies": (*s3test.Server).Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s3test.Start(t)
			mustPut(t, newStore(t, server, nil), "blob", pattern(40*mib)) // more than the buffers of both systems hold
			r, _, err := newStore(t, server, &s3blob.Options{Timeout: s3blob.DefaultTimeout}).Open(t.Context(), "blob", 0, -1)
			noError(t, err)
			defer r.Close()
			_, err = io.ReadAll(&hook{r, mib, 0, func() error { fail(server); return nil }})
			wantUnavailable(t, map[string]error{"read": err})
			if n, again := r.Read(make([]byte, 1)); n != 0 || !errors.Is(again, blobstore.ErrUnavailable) {
				t.Errorf("another read: %d, %v", n, again)
			}
		})
	}
}

// A failed Put gives its buffers back, and leaves no upload behind.
func TestReaderFails(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	store := newStore(t, server, nil)
	for _, at := range []int{0, 300 << 10, 5 * mib, 12 * mib} {
		r := &hook{bytes.NewReader(pattern(20 * mib)), at, 0, func() error { return io.ErrUnexpectedEOF }}
		if _, err := store.Put(t.Context(), "blob", r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("failing at byte %d: %v", at, err)
		}
		wantNothing(t, server)
	}
	if held, _ := store.Held(); held != 0 {
		t.Errorf("%d buffers are not given back", held)
	}
}

// zeros returns a reader of n bytes without allocating them.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestManyPutsAtOnce(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	const puts, size, buffers = 50, 11 * mib, 4
	store := newStore(t, server, &s3blob.Options{Memory: buffers * 5 * mib, Timeout: 5 * time.Minute})
	var most atomic.Int64
	var running sync.WaitGroup
	for i := range puts {
		running.Go(func() {
			content := &hook{zeros(size), 6 * mib, 0, func() error {
				held, _ := store.Held()
				for old := most.Load(); int64(held) > old && !most.CompareAndSwap(old, int64(held)); old = most.Load() {
				}
				return nil
			}}
			if n, err := store.Put(t.Context(), "blob-"+string(rune('a'+i/26))+string(rune('a'+i%26)), content); err != nil || n != size {
				t.Errorf("Put: %d, %v", n, err)
			}
		})
	}
	running.Wait()
	held, limit := store.Held()
	if limit != buffers || most.Load() < 2 || held != 0 {
		t.Errorf("up to %d buffers of %d were seen in use, %d are still; want %d", most.Load(), limit, held, buffers)
	}
	keys, err := list(t.Context(), store)
	if err != nil || len(keys) != puts {
		t.Errorf("%d blobs, %v; want %d", len(keys), err, puts)
	}
}

// No Put waits forever for a buffer, and none keeps one.
func TestNoBufferIsFree(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	store := newStore(t, server, &s3blob.Options{Memory: 5 * mib})
	hold, held := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := store.Put(t.Context(), "slow", &hook{zeros(11 * mib), mib, 0, func() error { close(held); <-hold; return nil }})
		done <- err
	}()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := store.Put(ctx, "large", zeros(mib)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Put whose context ends while it waits: %v", err)
	}
	if err := store.WaitForBuffer(t.Context(), 100*time.Millisecond); !errors.Is(err, blobstore.ErrUnavailable) {
		t.Errorf("waiting too long for a buffer: %v, want ErrUnavailable", err)
	}
	mustPut(t, store, "small", pattern(100_000)) // needs no buffer
	close(hold)
	noError(t, <-done)
	mustPut(t, store, "large", pattern(mib))
}

func TestDamageAtRest(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	store := newStore(t, server, nil)
	mustPut(t, store, "a/blob", pattern(mib))
	file := filepath.Join(server.Dir, "a", "blob")
	noError(t, os.Truncate(file, 1000))
	// Open returns the server's Info, so a caller that knows the size sees the difference before
	// reading.
	r, info, err := store.Open(t.Context(), "a/blob", 0, mib)
	if err != nil || info.Size != 1000 {
		t.Fatalf("a truncated object: %+v, %v", info, err)
	}
	_ = r.Close()
	noError(t, os.Truncate(file, 100*mib))
	r, info, err = store.Open(t.Context(), "a/blob", 0, -1)
	if err != nil || info.Size != 100*mib {
		t.Fatalf("an extended object: %+v, %v", info, err)
	}
	defer r.Close()
	// The file gets shorter while it is read.
	n, err := io.Copy(io.Discard, &hook{r, mib, 0, func() error { return os.Truncate(file, 0) }})
	if err == nil {
		t.Errorf("an object that is truncated while it's read: %d bytes and a clean end", n)
	}
}

// A wire is a connection that breaks after it has sent a number of bytes.
type wire struct {
	net.Conn
	left   int64
	closed func()
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p[:min(int64(len(p)), w.left)])
	if w.left -= int64(n); err == nil && w.left == 0 {
		_ = w.Close()
		err = errLost
	}
	return n, err
}

func (w *wire) Close() error {
	w.closed()
	return w.Conn.Close()
}

// wires returns a transport whose connections break after limit bytes, and the number of open ones.
func wires(limit int64) (transport *http.Transport, dialed, open *atomic.Int64) {
	dialed, open = new(atomic.Int64), new(atomic.Int64)
	return &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		dialed.Add(1)
		open.Add(1)
		return &wire{conn, limit, sync.OnceFunc(func() { open.Add(-1) })}, nil
	}}, dialed, open
}

func TestConnectionBreaksDuringPut(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for name, c := range map[string]struct {
		size  int
		limit int64 // bytes before a connection breaks
	}{
		"in the first header":              {12 * mib, 100},
		"in the content of a small one":    {100_000, 50_000},
		"in the content of one request":    {2 * mib, 1_500_000},
		"in the header of a part":          {12 * mib, 600},
		"in the middle of a part":          {12 * mib, 1_500_000},
		"just before the end of one part":  {5*mib + 1, 5 * mib},
		"in the content of the first part": {20 * mib, 70_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := strings.ReplaceAll(name, " ", "-")
			transport, _, _ := wires(c.limit)
			_, err := newStoreAt(t, server, prefix, &s3blob.Options{Transport: transport}).Put(t.Context(), "blob", bytes.NewReader(pattern(c.size)))
			if !errors.Is(err, blobstore.ErrUnavailable) {
				t.Errorf("Put: %v, want ErrUnavailable", err)
			}
			// A request to abort needs few bytes.
			if left := uploads(t, server, prefix); c.limit > 1000 && len(left) > 0 {
				t.Errorf("incomplete uploads are left: %v", left)
			}
			store := newStoreAt(t, server, prefix, nil)
			if keys, err := list(t.Context(), store); err != nil || len(keys) > 0 {
				t.Errorf("%v is there, %v", keys, err)
			}
			mustPut(t, store, "blob", pattern(c.size))
		})
	}
}

// Partly read responses are closed with their connections.
func TestCloseEarly(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	mustPut(t, newStore(t, server, nil), "blob", pattern(20*mib))
	transport, dialed, open := wires(mib)
	store := newStore(t, server, &s3blob.Options{Transport: transport})
	for range 100 {
		r, _, err := store.Open(t.Context(), "blob", 5, -1)
		noError(t, err)
		must(io.ReadFull(r, make([]byte, 100)))
		noError(t, r.Close())
	}
	if dialed.Load() < 100 {
		t.Errorf("%d connections for 100 answers, so some were used again although they were not read to the end", dialed.Load())
	}
	for end := time.Now().Add(patience); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d connections are still open", open.Load(), dialed.Load())
		}
	}
}
