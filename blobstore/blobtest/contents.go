package blobtest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/blobstore"
)

// testSizes uses sizes at which stores and their callers behave differently: 256 KiB is a block of
// formsvc, 5 MiB the smallest part of S3.
func testSizes(w *world) {
	for _, size := range []int{0, 1, 256*kib - 1, 256 * kib, 256*kib + 1, 5*mib - 1, 5 * mib, 5*mib + 1, 10 * mib} {
		want, given := w.content(fmt.Sprint(size), size), w.content(fmt.Sprint(size), size)
		begun := bytes.NewReader(slices.Concat([]byte("before"), want)) // could seek back to before the content
		_, _ = begun.Seek(int64(len("before")), io.SeekStart)           // never fails
		for name, r := range map[string]io.Reader{"plain": bytes.NewReader(given), "odd": newOdd(want), "begun": begun} {
			key := fmt.Sprintf("%s/%d", name, size)
			put := w.store.Put
			if name == "plain" { // a watched reader can't seek
				put = w.putWatched
			}
			n, err := put(w.ctx, key, r)
			w.check("Put "+key, err)
			if n != int64(size) {
				w.Errorf("Put %s: %d bytes", key, n)
			}
			clear(given) // the store must not keep the reader's bytes
			w.wantBlob(key, want)
			copy(given, want)
		}
	}
}

func testClosedReader(w *world) {
	w.put("closed", w.content("closed", large))
	r, _, err := w.store.Open(w.ctx, "closed", 0, -1)
	w.check("Open", err)
	_, err = io.ReadFull(r, make([]byte, 1000))
	w.check("read", err)
	w.check("Close", r.Close())
	if n, err := io.Copy(io.Discard, r); err == nil {
		w.Errorf("a closed reader gives %d bytes and ends", n)
	}
}

func testRanges(w *world) {
	for _, size := range []int{0, 1, 1000, 600 * kib} {
		key := fmt.Sprintf("range/%d", size)
		want := w.content(key, size)
		w.put(key, want)
		for _, offset := range []int64{0, 1, int64(size) / 2, int64(size) - 1, int64(size), int64(size) + mib, 1<<63 - 1, -1000, -1 << 63} {
			for _, length := range []int64{0, 1, 2, int64(size) / 3, int64(size), int64(size) + 1, 1<<63 - 1, -1, -1 << 63} {
				what := fmt.Sprintf("%d bytes at %d of %d", length, offset, size)
				got, info, err := w.read(key, offset, length)
				if offset < 0 {
					w.wantError(what, err, fs.ErrInvalid)
					continue
				}
				w.check(what, err)
				part := want[min(offset, int64(size)):]
				if length >= 0 {
					part = part[:min(length, int64(len(part)))]
				}
				if d := differ(got, part); d != "" {
					w.Errorf("%s: %s", what, d)
				}
				w.wantInfo("Open of "+what, info, key, size)
			}
		}
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
	w.wantCount(len(keys))
}

func testBadKeys(w *world) {
	w.put("a/b", []byte("content"))
	for _, key := range []string{
		"", "/", "//", "/a/b", "a/b/", "a//b", ".", "..", "./a/b", "a/./b", "../a/b", "a/../a/b", "../../etc/passwd", ".a", "a/.b",
		".tmp/a", "A/B", "a/B", "ä", "a b", "a/b\x00", "a/b\n", `a\b`, "a:b", "a%2fb", "a*", "a?b", "a/\xff", "c:", "~",
		strings.Repeat("s", 201), strings.Repeat("s/", blobstore.MaxKey/2) + "s",
	} {
		for method, call := range w.calls() {
			w.wantError(fmt.Sprintf("%s %q", method, key), call(w.ctx, key), fs.ErrInvalid)
		}
	}
	w.wantBlob("a/b", []byte("content"))
	w.wantCount(1)
}

// testMissing also uses keys that would be directories or files in a store of files.
func testMissing(w *world) {
	missing := []string{"unknown", "a", "a/b", "a/b/cc", "a/b/d", "a/b/c/d", "a/b/c/d/e"}
	for range 2 {
		w.put("a/b/c", []byte("content"))
		for _, key := range missing {
			w.wantNone(key)
			w.deleteNone(key)
			w.wantNone(key)
		}
		w.wantBlob("a/b/c", []byte("content"))
		w.check("Delete", w.store.Delete(w.ctx, "a/b/c"))
		for _, key := range []string{"a", "a/b", "a/b/c"} {
			w.wantNone(key)
			w.deleteNone(key)
		}
	}
}

// deleteNone deletes a blob that doesn't exist.
func (w *world) deleteNone(key string) {
	w.Helper()
	w.allowError("Delete "+key, w.store.Delete(w.ctx, key), fs.ErrNotExist)
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
