package blobtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"

	"github.com/formsvc/toolkit/blobstore"
)

func concurrencyTests() []test {
	return []test{
		{"a few keys", testFewKeys},
		{"many readers", testManyReaders},
	}
}

// testFewKeys puts, reads and deletes blobs under few keys concurrently. Each read must return
// one of the blobs that were put, complete.
func testFewKeys(w *world) {
	const workers, rounds, keys = 8, 40, 5
	var all sync.WaitGroup
	for worker := range uint64(workers) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, worker))
			for round := range uint64(rounds) {
				key := fmt.Sprintf("few/%d", random.IntN(keys))
				switch random.IntN(4) {
				case 0:
					err := w.store.Delete(w.ctx, key)
					w.allowError("Delete", err, fs.ErrNotExist)
				case 1:
					w.readSigned(key)
				default:
					size := []int{16, 16, 16, 1000, 1000, 1000, 300 * kib, 6 * mib}[random.IntN(8)]
					_, err := w.store.Put(w.ctx, key, newOdd(w.signed(worker<<32|round, size)))
					w.allowError("Put", err, fs.ErrExist)
				}
			}
		})
	}
	all.Wait()
	for key := range w.list("few/") {
		w.readSigned(key)
	}
}

// allowError reports an error other than allowed.
func (w *world) allowError(what string, err, allowed error) {
	w.Helper()
	if err != nil {
		w.wantError(what, err, allowed)
	}
}

// signed returns content that can be verified by itself.
func (w *world) signed(number uint64, size int) []byte {
	b := bytes.Clone(w.content(fmt.Sprint(number), size))
	binary.BigEndian.PutUint64(b, number)
	binary.BigEndian.PutUint64(b[8:], uint64(size))
	return b
}

func (w *world) readSigned(key string) {
	w.Helper()
	got, info, err := w.read(key, 0, -1)
	if err != nil {
		// Reading a deleted blob may fail in any way, but must not end early.
		if !errors.Is(err, fs.ErrNotExist) {
			w.Logf("reading while others delete: %v", err)
		}
		return
	}
	if len(got) < 16 {
		w.Errorf("%s has %d bytes", key, len(got))
		return
	}
	want := w.signed(binary.BigEndian.Uint64(got), int(binary.BigEndian.Uint64(got[8:])&0xffffff))
	if d := differ(got, want); d != "" || info.Size != int64(len(want)) {
		w.Errorf("%s of %d bytes has %s", key, info.Size, d)
	}
}

func testManyReaders(w *world) {
	want := w.content("readers", 6*mib)
	w.put("readers", want)
	var all sync.WaitGroup
	for worker := range uint64(8) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(8, worker))
			for range 10 {
				offset := random.IntN(len(want))
				length := random.IntN(len(want))
				got, _, err := w.read("readers", int64(offset), int64(length))
				if err != nil {
					w.Errorf("read: %v", err)
					return
				}
				if d := differ(got, want[offset:min(offset+length, len(want))]); d != "" {
					w.Errorf("%d bytes at %d: %s", length, offset, d)
				}
			}
		})
	}
	all.Wait()
}

func durabilityTests() []test {
	return []test{
		{"a second store", testReopen},
		{"several at once through two stores", testReopenAtOnce},
	}
}

func (w *world) reopen() blobstore.Store { return w.opts.Reopen(w.T, w.store) }

func testReopen(w *world) {
	contents := make(map[string][]byte)
	for _, size := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("durable/%d", size)
		contents[key] = w.content(key, size)
		w.put(key, contents[key])
	}
	w.put("durable/deleted", []byte("content"))
	w.check("Delete", w.store.Delete(w.ctx, "durable/deleted"))
	w.failing("durable/failed", 6*mib, false, readerError{})

	first := w.store
	w.store = w.reopen()
	for key, want := range contents {
		w.wantBlob(key, want)
		_, err := w.store.Put(w.ctx, key, newOdd([]byte("another")))
		w.wantError("Put of a key that is taken", err, fs.ErrExist)
	}
	w.wantNone("durable/deleted")
	w.wantNone("durable/failed")
	if n := len(w.list("")); n != len(contents) {
		w.Errorf("List returns %d blobs, want %d", n, len(contents))
	}

	// Both stores stay in use.
	w.put("durable/second", []byte("content"))
	w.check("Delete", w.store.Delete(w.ctx, "durable/0"))
	w.store = first
	w.wantBlob("durable/second", []byte("content"))
	w.wantNone("durable/0")
}

func testReopenAtOnce(w *world) {
	second := w.reopen()
	for _, size := range []int{0, 1000, 6 * mib} {
		for round := range 3 {
			w.race(fmt.Sprintf("race/%d/%d", size, round), size, w.store, second)
		}
	}
}
