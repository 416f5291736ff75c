package blobtest

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/blobstore"
)

func keyTests() []test {
	return []test{
		{"good keys", testGoodKeys},
		{"bad keys", testBadKeys},
	}
}

func testGoodKeys(w *world) {
	segment := strings.Repeat("s", 200)
	keys := []string{
		"a", "0", "-", "_", "a-b", "a_b", "a.b", "ab", "ab.", "a..b", "x/y", "x/y.z", "xy/z", "x-y", "1/0/1/1", "1/0/11", "10/11",
		segment, segment[1:], "formsvc-store",
		"long/" + segment + "/" + segment, strings.Repeat("d/", 100) + "e",
		"full/" + segment + "/" + segment[1:] + "/" + strings.Repeat("f", blobstore.MaxKey-4-3-200-199),
	}
	for _, key := range keys {
		w.put(key, []byte("content of "+key))
	}
	for _, key := range keys {
		w.wantBlob(key, []byte("content of "+key))
	}
	if n := len(w.list("")); n != len(keys) {
		w.Errorf("List returns %d blobs, want %d", n, len(keys))
	}
}

func testBadKeys(w *world) {
	w.put("a/b", []byte("content"))
	for _, key := range []string{
		"", "/", "//", "/a/b", "a/b/", "a//b", ".", "..", "./a/b", "a/./b", "../a/b", "a/../a/b", "../../etc/passwd", ".a", "a/.b",
		".tmp/a", "A/B", "a/B", "ä", "a b", "a/b\x00", "a/b\n", `a\b`, "a:b", "a%2fb", "a*", "a?b", "a/\xff", "c:", "~",
		strings.Repeat("s", 201), strings.Repeat("s/", blobstore.MaxKey/2) + "s",
	} {
		for _, c := range calls() {
			w.wantError(fmt.Sprintf("%s %q", c.name, key), c.do(w, w.ctx, key), fs.ErrInvalid)
		}
	}
	w.wantBlob("a/b", []byte("content"))
	if n := len(w.list("")); n != 1 {
		w.Errorf("List returns %d blobs, want 1", n)
	}
}

func conflictTests() []test {
	return []test{
		{"a key that is taken", testTaken},
		{"several at once", testPutAtOnce},
		{"a key that was taken", testFreed},
	}
}

func testTaken(w *world) {
	for _, first := range []int{0, 1000, 6 * mib} {
		key := fmt.Sprintf("taken/%d", first)
		want := w.content(key, first)
		w.put(key, want)
		for _, second := range []int{0, 1000, 2000, 6 * mib} {
			_, err := w.store.Put(w.ctx, key, newOdd(w.content("other", second)))
			w.wantError(fmt.Sprintf("Put of %d bytes where there are %d", second, first), err, fs.ErrExist)
			w.wantBlob(key, want)
		}
	}
}

func testPutAtOnce(w *world) {
	for _, size := range []int{0, 1000, 6 * mib} {
		for round := range 4 {
			w.race(fmt.Sprintf("race/%d/%d", size, round), size, w.store)
		}
	}
}

// race puts eight blobs under one key, alternating between the stores. Their readers reach the end
// together.
func (w *world) race(key string, size int, stores ...blobstore.Store) {
	w.Helper()
	var all sync.WaitGroup
	var errs [8]error
	var contents [8][]byte
	var arrived atomic.Int64
	together := make(chan struct{})
	meet := func() {
		if arrived.Add(1) == int64(len(errs)) {
			close(together)
		}
		select {
		case <-together:
		case <-time.After(200 * time.Millisecond): // a store may run fewer Puts at a time
		}
	}
	for i := range errs {
		contents[i] = w.content(fmt.Sprint(key, i), size+i)
		r := &script{rest: contents[i], steps: []step{{size + i, meet}}}
		all.Go(func() { _, errs[i] = stores[i%len(stores)].Put(w.ctx, key, r) })
	}
	all.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err != nil:
			w.wantError("Put of one of several", err, fs.ErrExist)
		case winner >= 0:
			w.Errorf("two Puts of %s succeeded", key)
		default:
			winner = i
		}
	}
	if winner < 0 {
		w.Fatalf("no Put of %s succeeded", key)
	}
	w.wantBlob(key, contents[winner])
}

func testFreed(w *world) {
	for _, size := range []int{1000, 6 * mib} {
		key := fmt.Sprintf("freed/%d", size)
		for i := range 3 {
			want := w.content(fmt.Sprint(key, i), size+i)
			w.put(key, want)
			w.wantBlob(key, want)
			w.check("Delete", w.store.Delete(w.ctx, key))
			w.wantNone(key)
		}
	}
}

func missingTests() []test {
	return []test{
		{"unknown keys", testUnknown},
		{"parts of keys", testKeyParts},
		{"read after Delete", testReadDeleted},
	}
}

func testUnknown(w *world) {
	w.put("known/a", []byte("content"))
	for _, key := range []string{"unknown", "un/known", "known/b", "known/aa"} {
		w.wantNone(key)
		w.deleteNone(key)
		w.wantNone(key)
	}
	w.wantBlob("known/a", []byte("content"))
}

// deleteNone deletes a blob that doesn't exist.
func (w *world) deleteNone(key string) {
	w.Helper()
	if err := w.store.Delete(w.ctx, key); err != nil {
		w.wantError("Delete "+key, err, fs.ErrNotExist)
	}
}

// testKeyParts uses keys that would be directories or files in a store of files.
func testKeyParts(w *world) {
	w.put("a/b/c", []byte("content"))
	for _, key := range []string{"a", "a/b", "a/b/c/d", "a/b/c/d/e"} {
		w.wantNone(key)
		w.deleteNone(key)
	}
	w.wantBlob("a/b/c", []byte("content"))
	w.check("Delete", w.store.Delete(w.ctx, "a/b/c"))
	for _, key := range []string{"a", "a/b", "a/b/c"} {
		w.wantNone(key)
		w.deleteNone(key)
	}
	w.put("a/b/c", []byte("again"))
	w.wantBlob("a/b/c", []byte("again"))
}

// testReadDeleted deletes a blob that is being read. The rest is read completely or fails.
func testReadDeleted(w *world) {
	for _, size := range []int{1000, 300 * kib, large} {
		key := fmt.Sprintf("deleted/%d", size)
		want := w.content(key, size)
		w.put(key, want)
		got, err := w.readPaused(w.ctx, key, 1, func() { w.check("Delete", w.store.Delete(w.ctx, key)) })
		if d := differ(got, want); err == nil && d != "" {
			w.Errorf("a blob deleted while it is read ends without an error: %s", d)
		}
		w.wantNone(key)
	}
}
