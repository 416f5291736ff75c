package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

// testTaken puts blobs under taken keys, and under keys that are free again.
func testTaken(w *world) {
	for _, size := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("taken/%d", size)
		for round := range 3 {
			want := w.content(fmt.Sprint(key, round), size+round)
			w.put(key, want)
			for _, second := range []int{0, 2000, 6 * mib} {
				_, err := w.store.Put(w.ctx, key, newOdd(w.content("other", second)))
				w.wantError(fmt.Sprintf("Put of %d bytes where there are %d", second, size), err, fs.ErrExist)
			}
			// A store may check the key before it reads, or after.
			_, err := w.store.Put(w.ctx, key, &script{rest: w.content("other", 1000), end: errReader})
			if !errors.Is(err, fs.ErrExist) {
				w.wantError("Put of a reader that fails, where there is a blob", err, errReader)
			}
			w.wantBlob(key, want)
			w.check("Delete", w.store.Delete(w.ctx, key))
			w.wantNone(key)
		}
	}
}

// race repeatedly puts eight blobs under one key, alternating between the stores.
func (w *world) race(stores ...blobstore.Store) {
	for _, size := range []int{0, 1000, 6 * mib} {
		for round := range 4 {
			key := fmt.Sprintf("race/%d/%d", size, round)
			var all sync.WaitGroup
			var errs [8]error
			var arrived atomic.Int64
			together := make(chan struct{})
			meet := func() { // the readers reach their ends together
				if arrived.Add(1) == int64(len(errs)) {
					close(together)
				}
				select {
				case <-together:
				case <-time.After(200 * time.Millisecond): // a store may run fewer Puts at a time
				}
			}
			content := func(i int) []byte { return w.content(fmt.Sprint(key, i), size+i) }
			for i := range errs {
				r := &script{rest: content(i), steps: []step{{size + i, meet}}}
				all.Go(func() { _, errs[i] = stores[i%len(stores)].Put(w.ctx, key, r) })
			}
			all.Wait()
			winner := slices.Index(errs[:], nil)
			for i, err := range errs {
				if i != winner {
					w.wantError("Put of one of several", err, fs.ErrExist)
				}
			}
			if winner < 0 {
				w.Fatalf("no Put of %s succeeded", key)
			}
			w.wantBlob(key, content(winner))
		}
	}
}

// testInvisible looks for a blob at many positions of its Put.
func testInvisible(w *world) {
	for _, size := range []int{0, 1, 300 * kib, large} {
		key := fmt.Sprintf("half/%d", size)
		want := w.content(key, size)
		r := &script{rest: want}
		for _, at := range []int{0, 1, 100 * kib, 5 * mib, 5*mib + 1, 10 * mib, size} {
			if at <= size {
				r.steps = append(r.steps, step{at, func() { w.wantNone(key) }})
			}
		}
		_, err := w.store.Put(w.ctx, key, r)
		w.check("Put "+key, err)
		if len(r.steps) > 0 {
			w.Errorf("%d looks at %s did not happen", len(r.steps), key)
		}
		w.wantBlob(key, want)
	}
}

var errReader = errors.New("the reader failed")

// testFailing has readers whose errors resemble errors with another meaning.
func testFailing(w *world) {
	for i, end := range []error{
		errReader, io.ErrUnexpectedEOF, fmt.Errorf("wraps the end, but isn't it: %w", io.EOF),
		fmt.Errorf("part: %w", fs.ErrNotExist), fs.ErrClosed, context.DeadlineExceeded, syscall.ECONNRESET,
	} {
		for _, size := range []int{0, 1, 256 * kib, 5 * mib, 6 * mib} {
			for _, joint := range []bool{false, true} {
				key := fmt.Sprintf("failing/%d/%d/%t", i, size, joint)
				_, err := w.putWatched(w.ctx, key, &script{rest: w.content(key, size), end: end, joint: joint})
				w.wantError(fmt.Sprintf("Put of a reader that fails after %d bytes", size), err, end)
				if errors.Is(err, blobstore.ErrUnavailable) {
					w.Errorf("an error of the reader is one of the store: %v", err)
				}
				w.wantNone(key)
				w.put(key, []byte("again"))
				w.wantBlob(key, []byte("again"))
			}
		}
	}
}

func testEndedContext(w *world) {
	w.put("there", []byte("content"))
	cancelled, cancel := context.WithCancel(w.ctx)
	cancel()
	expired, stop := context.WithDeadline(w.ctx, time.Unix(0, 0))
	defer stop()
	for _, ctx := range []context.Context{cancelled, expired} {
		for method, call := range w.calls() {
			for _, key := range []string{"there", "free"} {
				w.wantError(method+" with an ended context", call(ctx, key), ctx.Err())
			}
		}
		for _, prefix := range []string{"", "none"} {
			_, err := w.tryList(ctx, prefix)
			w.wantError("List with an ended context", err, ctx.Err())
		}
	}
	w.wantBlob("there", []byte("content"))
	w.wantCount(1)
}

// testCancelPut cancels the context at a position in the content.
func testCancelPut(w *world) {
	for _, at := range []int{0, 1, 256 * kib, 5 * mib, 5*mib + 1, 11 * mib} {
		for _, more := range []int{0, large} {
			key := fmt.Sprintf("cancelled/%d/%d", at, more)
			ctx, cancel := context.WithCancel(w.ctx)
			_, err := w.putWatched(ctx, key, &script{rest: w.content(key, at+more), steps: []step{{at, cancel}}})
			w.wantError(fmt.Sprintf("Put whose context ends at byte %d of %d", at, at+more), err, context.Canceled)
			w.wantNone(key)
			w.put(key, []byte("again"))
		}
	}
}

func testCancelRead(w *world) {
	want := w.content("read", large)
	w.put("read", want)
	for _, after := range []int64{0, 1, 300 * kib, large - 1} {
		ctx, cancel := context.WithCancel(w.ctx)
		got, err := w.readPaused(ctx, "read", after, cancel)
		w.wantError(fmt.Sprintf("reading after the context ended at byte %d", after), err, context.Canceled)
		if !bytes.HasPrefix(want, got) {
			w.Errorf("what was read is %s", differ(got, want))
		}
	}
}

func testReopen(w *world) {
	second := w.reopen()
	for _, size := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("durable/%d", size)
		want := w.content(key, size)
		w.put(key, want)
		for _, s := range []blobstore.Store{second, w.reopen()} { // one that was open, and one that wasn't
			other := *w
			other.store = s
			other.wantBlob(key, want)
			_, err := s.Put(w.ctx, key, bytes.NewReader(want))
			w.wantError("Put of a key that is taken", err, fs.ErrExist)
		}
		w.check("Delete", second.Delete(w.ctx, key))
		w.wantNone(key)
	}
}

// testClean cleans up after interrupted Puts, and never removes blobs.
func testClean(w *world) {
	blobs := make(map[string][]byte)
	unchanged := func() {
		w.Helper()
		for key, want := range blobs {
			w.wantBlob(key, want)
		}
		w.wantCount(len(blobs))
	}
	w.clean(-time.Hour, 0)
	for _, size := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("kept/%d", size)
		blobs[key] = w.content(key, size)
		w.put(key, blobs[key])
		// A failed Put removes its remains.
		_, err := w.store.Put(w.ctx, "failed", &script{rest: blobs[key], end: errReader})
		w.wantError("Put of a reader that fails", err, errReader)
	}
	w.clean(-time.Hour, 0)
	unchanged()
	for range 3 {
		w.opts.CutOff(w.T, w.store)
	}
	unchanged()
	w.clean(time.Hour, 0)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := w.cleaner().Clean(ctx, time.Now().Add(time.Hour))
	w.wantError("Clean with an ended context", err, context.Canceled)
	w.clean(-time.Hour, 3)
	w.clean(-time.Hour, 0)
	unchanged()
}

// testCleanMeanwhile cleans during a Put as if the Put had been inactive for long. A store may have
// stored nothing of it yet.
func testCleanMeanwhile(w *world) {
	for _, size := range []int{1000, large} {
		key := fmt.Sprintf("under-way/%d", size)
		want := w.content(key, size)
		removed := 0
		_, err := w.store.Put(w.ctx, key, &script{rest: want, steps: []step{
			{size - 1, func() { w.clean(time.Hour, 0) }},
			{size, func() {
				n, err := w.cleaner().Clean(w.ctx, time.Now().Add(time.Hour))
				w.check("Clean", err)
				removed = n
			}},
		}})
		switch {
		case err != nil:
			w.wantNone(key)
		case removed > 0:
			w.Errorf("Clean removed a Put of %d bytes, and it succeeded", size)
		default:
			w.wantBlob(key, want)
		}
		w.clean(-time.Hour, 0)
	}
}
