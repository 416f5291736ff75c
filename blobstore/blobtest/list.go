package blobtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

func testPrefixes(w *world) {
	keys := []string{"aa/one", "aa/two", "aa/one.b", "ab/one", "b", "aa.x", "aa-x/y", "c/d/e/f", "c/d/e/g", "c/d/h", "c/de", "z/z/z"}
	prefixes := []string{
		"", "/", ".", "..", "../", ".tmp", "./aa", "aa//", "A", "aa/\x00", "\xff", "aa/one/", "z/z/z/", "none", "none/", "b/b",
	}
	for _, key := range keys {
		for i := range len(key) {
			prefixes = append(prefixes, key[:i+1])
		}
	}
	look := func(keys []string) {
		for _, prefix := range prefixes {
			var want []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			infos := w.list(prefix)
			if got := slices.Sorted(maps.Keys(infos)); !slices.Equal(got, want) {
				w.Errorf("List %q: %q, want %q", prefix, got, want)
			}
			for key, info := range infos {
				w.wantInfo("List", info, key, len(key))
			}
		}
	}
	look(nil)
	for _, key := range keys {
		w.put(key, []byte(key))
	}
	slices.Sort(keys)
	look(keys)
}

// testManyKeys lists more than two pages of keys; a page of S3 has 1,000.
func testManyKeys(w *world) {
	const blobs = 2_500
	key := func(i int) string { return fmt.Sprintf("%02x/%d", i%5, i) }
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < blobs; i += 8 {
				if _, err := w.store.Put(w.ctx, key(i), strings.NewReader(key(i))); err != nil {
					w.Errorf("Put %s: %v", key(i), err)
					return
				}
			}
		})
	}
	all.Wait()
	infos := w.list("")
	if len(infos) != blobs {
		w.Errorf("List returns %d blobs, want %d", len(infos), blobs)
	}
	for i := range blobs {
		w.wantInfo("List", infos[key(i)], key(i), len(key(i)))
	}
	if n := len(w.list("03/")); n != blobs/5 {
		w.Errorf("List of a prefix returns %d blobs, want %d", n, blobs/5)
	}
}

// testStopList breaks out of a list, ends its context, and deletes what is listed.
func testStopList(w *world) {
	const blobs = 50
	for i := range blobs {
		w.put(fmt.Sprintf("%02d/blob", i), []byte("content"))
	}
	for _, at := range []int{1, 3, blobs - 1} {
		n := 0
		for _, err := range w.store.List(w.ctx, "") {
			w.check("List", err)
			if n++; n == at {
				break
			}
		}
		ctx, cancel := context.WithCancel(w.ctx)
		n = 0
		var failed error
		for _, err := range w.store.List(ctx, "") {
			if failed != nil {
				w.Error("List goes on after an error")
			}
			if n++; n == at {
				cancel()
			}
			failed = err
		}
		cancel()
		w.wantError(fmt.Sprintf("List whose context ends after %d blobs", at), failed, context.Canceled)
	}
	w.wantCount(blobs)
	for info, err := range w.store.List(w.ctx, "") {
		w.check("List", err)
		w.check("Delete", w.store.Delete(w.ctx, info.Key))
	}
	w.wantCount(0)
}
