package blobtest

import (
	"context"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

func cleanTests() []test {
	return []test{
		{"nothing to do", testCleanNothing},
		{"Puts that were cut off", testCleanCutOff},
		{"Puts that failed", testCleanFailed},
		{"a Put under way", testCleanUnderWay},
		{"a cancelled context", testCleanCancelled},
	}
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

func (w *world) cleaner() blobstore.Cleaner {
	w.Helper()
	c, ok := w.store.(blobstore.Cleaner)
	if !ok {
		w.Fatal("Options.CutOff is set, and the store is no blobstore.Cleaner")
	}
	return c
}

// addBlobs puts some blobs and returns a function that checks that they still exist.
func (w *world) addBlobs() (check func()) {
	w.Helper()
	blobs := make(map[string][]byte)
	for _, size := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("kept/%d", size)
		blobs[key] = w.content(key, size)
		w.put(key, blobs[key])
	}
	return func() {
		w.Helper()
		for key, want := range blobs {
			w.wantBlob(key, want)
		}
		if n := len(w.list("")); n != len(blobs) {
			w.Errorf("List returns %d blobs, want %d", n, len(blobs))
		}
	}
}

func testCleanNothing(w *world) {
	w.clean(-time.Hour, 0)
	unchanged := w.addBlobs()
	w.clean(time.Hour, 0)
	w.clean(-time.Hour, 0)
	unchanged()
}

func testCleanCutOff(w *world) {
	unchanged := w.addBlobs()
	for range 3 {
		w.opts.CutOff(w.T, w.store)
	}
	unchanged()
	w.clean(time.Hour, 0)
	w.clean(-time.Hour, 3)
	w.clean(-time.Hour, 0)
	unchanged()
	w.opts.CutOff(w.T, w.store)
	w.clean(-time.Hour, 1)
	unchanged()
}

// testCleanFailed finds nothing, since a failed Put removes its remains.
func testCleanFailed(w *world) {
	unchanged := w.addBlobs()
	for _, size := range []int{0, 1000, large} {
		w.failing(fmt.Sprintf("failed/%d", size), size, false, readerError{})
	}
	w.clean(-time.Hour, 0)
	unchanged()
}

// testCleanUnderWay cleans during a Put as if the Put had been inactive for long. A store may have
// stored nothing of it yet.
func testCleanUnderWay(w *world) {
	unchanged := w.addBlobs()
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
			w.check("Delete", w.store.Delete(w.ctx, key))
		}
	}
	w.clean(-time.Hour, 0)
	unchanged()
}

func testCleanCancelled(w *world) {
	w.opts.CutOff(w.T, w.store)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	_, err := w.cleaner().Clean(ctx, time.Now().Add(time.Hour))
	w.wantError("Clean with a cancelled context", err, context.Canceled)
	w.clean(-time.Hour, 1)
}
