package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

func cancelTests() []test {
	return []test{
		{"ended before the call", testCancelledBefore},
		{"ends during Put", testCancelDuringPut},
		{"ends sometime during Put", testCancelSometime},
		{"ends while reading", testCancelRead},
		{"ends during List", testCancelList},
	}
}

func testCancelledBefore(w *world) {
	w.put("there", []byte("content"))
	cancelled, cancel := context.WithCancel(w.ctx)
	cancel()
	expired, stop := context.WithDeadline(w.ctx, time.Unix(0, 0))
	defer stop()
	for _, key := range []string{"there", "free"} {
		for _, c := range calls() {
			w.wantError(c.name+" with a cancelled context", c.do(w, cancelled, key), context.Canceled)
			w.wantError(c.name+" with an expired context", c.do(w, expired, key), context.DeadlineExceeded)
		}
	}
	for prefix, n := range map[string]int{"": 1, "none": 0} {
		_, err := w.tryList(cancelled, prefix)
		w.wantError("List with a cancelled context", err, context.Canceled)
		_, err = w.tryList(expired, prefix)
		w.wantError("List with an expired context", err, context.DeadlineExceeded)
		if got := len(w.list(prefix)); got != n {
			w.Errorf("List %q returns %d blobs, want %d", prefix, got, n)
		}
	}
	w.wantBlob("there", []byte("content"))
}

// testCancelDuringPut cancels the context at a position in the content.
func testCancelDuringPut(w *world) {
	for _, at := range []int{0, 1, 256 * kib, 5 * mib, 5*mib + 1, 11 * mib} {
		for _, more := range []int{0, large} {
			key := fmt.Sprintf("cancelled/%d/%d", at, more)
			ctx, cancel := context.WithCancel(w.ctx)
			r := &watched{Reader: &script{rest: w.content(key, at+more), steps: []step{{at, cancel}}}}
			_, err := w.store.Put(ctx, key, r)
			w.wantError(fmt.Sprintf("Put whose context ends at byte %d of %d", at, at+more), err, context.Canceled)
			r.wantUnread(w)
			w.wantNone(key)
			want := w.content("again", 1000)
			w.put(key, want)
			w.wantBlob(key, want)
		}
	}
}

// testCancelSometime compares Put's result with the store. After an error there may be a blob, at
// once or later, if the response of a server was lost; but it must be complete.
func testCancelSometime(w *world) {
	contents := make(map[string][]byte)
	for i := range 40 {
		key := fmt.Sprintf("sometime/%d", i)
		contents[key] = w.content(key, 1000+i%4*2*mib)
		ctx, cancel := context.WithCancel(w.ctx)
		timer := time.AfterFunc(time.Duration(i*i)*10*time.Microsecond, cancel)
		r := &watched{Reader: bytes.NewReader(contents[key])}
		_, err := w.store.Put(ctx, key, r)
		timer.Stop()
		cancel()
		r.wantUnread(w)
		if err == nil {
			w.wantBlob(key, contents[key])
		} else {
			w.wantError("Put whose context ends sometime", err, context.Canceled)
		}
	}
	for key := range w.list("") {
		w.wantBlob(key, contents[key])
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
	// Further reads after the error must not return io.EOF either.
	ctx, cancel := context.WithCancel(w.ctx)
	r, _, err := w.store.Open(ctx, "read", 0, -1)
	w.check("Open", err)
	defer func() { _ = r.Close() }()
	cancel()
	for range 3 {
		if n, err := r.Read(make([]byte, 100)); err == nil || errors.Is(err, io.EOF) {
			w.Errorf("a reader whose context has ended gives %d bytes and error %v", n, err)
		}
	}
	w.wantBlob("read", want)
}

func testCancelList(w *world) {
	const blobs = 50
	for i := range blobs {
		w.put(fmt.Sprintf("%02d/blob", i), []byte("content"))
	}
	for _, at := range []int{1, 3, blobs - 1} {
		ctx, cancel := context.WithCancel(w.ctx)
		n := 0
		var failed error
		for _, err := range w.store.List(ctx, "") {
			if failed != nil {
				w.Error("List goes on after an error")
			}
			if failed = err; err != nil {
				continue
			}
			if n++; n == at {
				cancel()
			}
		}
		cancel()
		w.wantError(fmt.Sprintf("List whose context ends after %d blobs", at), failed, context.Canceled)
	}
	if n := len(w.list("")); n != blobs {
		w.Errorf("List returns %d blobs, want %d", n, blobs)
	}
}
