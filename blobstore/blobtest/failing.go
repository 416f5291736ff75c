package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

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
	return b.Bytes(), err
}

func failureTests() []test {
	return []test{
		{"readers that fail", testFailing},
		{"errors that look like others", testFailingAs},
		{"the blob that is there", testFailingTaken},
	}
}

// A readerError is the error of failing readers.
type readerError struct{}

// Error implements error.
func (readerError) Error() string { return "the reader failed" }

// failing puts the content of a reader that fails after size bytes.
func (w *world) failing(key string, size int, joint bool, end error) {
	w.Helper()
	r := &watched{Reader: &script{rest: w.content(key, size), end: end, joint: joint}}
	_, err := w.store.Put(w.ctx, key, r)
	w.wantError(fmt.Sprintf("Put of a reader that fails after %d bytes", size), err, end)
	r.wantUnread(w)
}

func testFailing(w *world) {
	for _, size := range []int{0, 1, 256 * kib, 5*mib - 1, 5 * mib, 5*mib + 1, large} {
		for _, joint := range []bool{false, true} {
			key := fmt.Sprintf("failing/%d/%t", size, joint)
			w.failing(key, size, joint, readerError{})
			w.wantNone(key)
			want := w.content("again", size)
			w.put(key, want)
			w.wantBlob(key, want)
		}
	}
}

// testFailingAs tests readers whose errors resemble errors with another meaning.
func testFailingAs(w *world) {
	for name, end := range map[string]error{
		"unexpected-eof": io.ErrUnexpectedEOF,
		"wrapped-eof":    fmt.Errorf("cut off: %w", io.EOF), // wraps io.EOF, but isn't the end
		"not-exist":      fmt.Errorf("part: %w", fs.ErrNotExist),
		"closed":         fs.ErrClosed,
		"deadline":       context.DeadlineExceeded,
	} {
		for _, size := range []int{1000, 6 * mib} {
			for _, joint := range []bool{false, true} {
				key := fmt.Sprintf("%s/%d/%t", name, size, joint)
				w.failing(key, size, joint, end)
				w.wantNone(key)
			}
		}
	}
}

func testFailingTaken(w *world) {
	for _, size := range []int{1000, 6 * mib} {
		want := w.content("taken", 2000)
		key := fmt.Sprintf("taken/%d", size)
		w.put(key, want)
		_, err := w.store.Put(w.ctx, key, &script{rest: w.content(key, size), end: readerError{}})
		// A store may check the key first.
		if !errors.Is(err, fs.ErrExist) {
			w.wantError("Put of a reader that fails, where there is a blob", err, readerError{})
		}
		w.wantBlob(key, want)
	}
}

func visibilityTests() []test {
	return []test{
		{"while it is put", testHalfPut},
		{"the key is taken meanwhile", testTakenMeanwhile},
	}
}

// testHalfPut looks for a blob at many positions of its Put.
func testHalfPut(w *world) {
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

// testTakenMeanwhile puts a second blob under the key of a running Put: the first one that finishes
// gets the key.
func testTakenMeanwhile(w *world) {
	for _, size := range []int{1000, large} {
		key := fmt.Sprintf("meanwhile/%d", size)
		want := w.content("second", 2000)
		_, err := w.store.Put(w.ctx, key, &script{
			rest:  w.content("first", size),
			steps: []step{{size / 2, func() { w.put(key, want) }}},
		})
		w.wantError("Put of a key that was taken meanwhile", err, fs.ErrExist)
		w.wantBlob(key, want)
	}
}
