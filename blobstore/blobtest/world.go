package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// large is more than two parts of the smallest size of S3 (5 MiB).
const large = 12 * mib

// A world is a test with its store.
type world struct {
	*testing.T
	ctx   context.Context
	store blobstore.Store
	opts  Options
}

// content returns pseudorandom bytes that depend only on the arguments.
func (w *world) content(seed string, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(b) // never fails
	return b
}

// differ describes the difference of two contents, or returns "".
func differ(got, want []byte) string {
	if bytes.Equal(got, want) {
		return ""
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("%d bytes instead of %d, different from byte %d on", len(got), len(want), at)
}

// check ends the test if err isn't nil.
func (w *world) check(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func (w *world) wantError(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// allowError reports an error other than allowed.
func (w *world) allowError(what string, err, allowed error) {
	w.Helper()
	if err != nil {
		w.wantError(what, err, allowed)
	}
}

// put stores a blob.
func (w *world) put(key string, content []byte) {
	w.Helper()
	n, err := w.store.Put(w.ctx, key, bytes.NewReader(content))
	w.check("Put "+key, err)
	if n != int64(len(content)) {
		w.Errorf("Put %s: %d bytes, want %d", key, n, len(content))
	}
}

// putWatched checks that Put doesn't read after it has returned. It waits for a goroutine that may
// still read.
func (w *world) putWatched(ctx context.Context, key string, r io.Reader) (int64, error) {
	w.Helper()
	reader := &watched{Reader: r}
	n, err := w.store.Put(ctx, key, reader)
	reader.over.Store(true)
	time.Sleep(20 * time.Millisecond)
	if n := reader.late.Load(); n > 0 {
		w.Errorf("the reader was read %d times after Put returned", n)
	}
	return n, err
}

// read reads what Open returns.
func (w *world) read(key string, offset, length int64) ([]byte, blobstore.Info, error) {
	r, info, err := w.store.Open(w.ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	size := max(info.Size-max(offset, 0), 0)
	if length >= 0 {
		size = min(size, length)
	}
	// With enough room there is less to copy than with io.ReadAll.
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = b.ReadFrom(r)
	return b.Bytes(), info, errors.Join(err, r.Close())
}

// readPaused reads a blob and calls pause after some bytes.
func (w *world) readPaused(ctx context.Context, key string, after int64, pause func()) ([]byte, error) {
	w.Helper()
	r, info, err := w.store.Open(ctx, key, 0, -1)
	w.check("Open "+key, err)
	defer func() { _ = r.Close() }()
	b := bytes.NewBuffer(make([]byte, 0, info.Size+bytes.MinRead))
	_, err = io.CopyN(b, r, after)
	w.check("read "+key, err)
	pause()
	_, err = b.ReadFrom(r)
	if n, again := r.Read(make([]byte, 100)); err != nil && (again == nil || errors.Is(again, io.EOF)) {
		w.Errorf("a reader that failed with %v gives %d bytes and error %v then", err, n, again)
	}
	return b.Bytes(), err
}

// list returns all blobs by key.
func (w *world) list(prefix string) map[string]blobstore.Info {
	w.Helper()
	found, err := w.tryList(w.ctx, prefix)
	w.check(fmt.Sprintf("List %q", prefix), err)
	return found
}

func (w *world) tryList(ctx context.Context, prefix string) (map[string]blobstore.Info, error) {
	w.Helper()
	found := make(map[string]blobstore.Info)
	var failed error
	for info, err := range w.store.List(ctx, prefix) {
		switch {
		case failed != nil:
			w.Errorf("List %q goes on after an error", prefix)
		case err != nil:
			failed = err
			continue
		}
		if _, twice := found[info.Key]; twice {
			w.Errorf("List %q returns %s twice", prefix, info.Key)
		}
		found[info.Key] = info
	}
	return found, failed
}

// wantBlob checks with every method that a blob exists.
func (w *world) wantBlob(key string, want []byte) {
	w.Helper()
	stat, err := w.store.Stat(w.ctx, key)
	w.check("Stat "+key, err)
	w.wantInfo("Stat", stat, key, len(want))
	got, info, err := w.read(key, 0, -1)
	w.check("read "+key, err)
	if d := differ(got, want); d != "" {
		w.Errorf("read %s: %s", key, d)
	}
	if info.Key != stat.Key || info.Size != stat.Size || !info.ModTime.Equal(stat.ModTime) {
		w.Errorf("Open %s says %+v, and Stat %+v", key, info, stat)
	}
	listed, ok := w.list(key)[key]
	if !ok {
		w.Errorf("List leaves out %s", key)
		return
	}
	w.wantInfo("List", listed, key, len(want))
	// A list may have more precise times than the header of an HTTP response.
	if d := listed.ModTime.Sub(stat.ModTime).Abs(); d > time.Second {
		w.Errorf("%s is of %v in List and of %v in Stat", key, listed.ModTime, stat.ModTime)
	}
}

// wantInfo checks the Info of a blob that was just put.
func (w *world) wantInfo(method string, info blobstore.Info, key string, size int) {
	w.Helper()
	if info.Key != key || info.Size != int64(size) {
		w.Errorf("%s says %q of %d bytes, want %q of %d", method, info.Key, info.Size, key, size)
	}
	// Tolerant, because the server's clock may differ from ours.
	if now := time.Now(); info.ModTime.After(now.Add(time.Minute)) || info.ModTime.Before(now.Add(-24*time.Hour)) {
		w.Errorf("%s says that %s is of %v, and now is %v", method, key, info.ModTime, now)
	}
}

// wantNone checks that there is no blob under a key.
func (w *world) wantNone(key string) {
	w.Helper()
	_, err := w.store.Stat(w.ctx, key)
	w.wantError("Stat "+key, err, fs.ErrNotExist)
	r, _, err := w.store.Open(w.ctx, key, 0, -1)
	w.wantError("Open "+key, err, fs.ErrNotExist)
	if err == nil {
		_ = r.Close()
	}
	if _, listed := w.list(key)[key]; listed {
		w.Errorf("List has %s", key)
	}
}

// wantCount checks the number of blobs.
func (w *world) wantCount(want int) {
	w.Helper()
	if n := len(w.list("")); n != want {
		w.Errorf("List returns %d blobs, want %d", n, want)
	}
}

// calls returns the methods that take a key.
func (w *world) calls() map[string]func(ctx context.Context, key string) error {
	return map[string]func(ctx context.Context, key string) error{
		"Put": func(ctx context.Context, key string) error {
			_, err := w.store.Put(ctx, key, bytes.NewReader([]byte("content")))
			return err
		},
		"Open": func(ctx context.Context, key string) error {
			r, _, err := w.store.Open(ctx, key, 0, -1)
			if err == nil {
				_ = r.Close()
			}
			return err
		},
		"Stat": func(ctx context.Context, key string) error {
			_, err := w.store.Stat(ctx, key)
			return err
		},
		"Delete": w.store.Delete,
	}
}

// reopen opens the data of the store once more, or skips the test.
func (w *world) reopen() blobstore.Store {
	w.Helper()
	if w.opts.Reopen == nil {
		w.Skip("Options.Reopen is not set")
	}
	return w.opts.Reopen(w.T, w.store)
}

// cleaner returns the store, or skips the test.
func (w *world) cleaner() blobstore.Cleaner {
	w.Helper()
	if w.opts.CutOff == nil {
		w.Skip("Options.CutOff is not set")
	}
	c, ok := w.store.(blobstore.Cleaner)
	if !ok {
		w.Fatal("Options.CutOff is set, and the store is no blobstore.Cleaner")
	}
	return c
}

// clean removes remains older than age, and checks their number.
func (w *world) clean(age time.Duration, want int) {
	w.Helper()
	n, err := w.cleaner().Clean(w.ctx, time.Now().Add(-age))
	w.check("Clean", err)
	if n != want {
		w.Errorf("Clean of what is older than %v removes %d, want %d", age, n, want)
	}
}
