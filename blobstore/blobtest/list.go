package blobtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

func listTests() []test {
	return []test{
		{"nothing", testListEmpty},
		{"prefixes", testPrefixes},
		{"many keys", testManyKeys},
		{"stopping early", testStopList},
		{"during Put and Delete", testListMeanwhile},
	}
}

func testListEmpty(w *world) {
	for _, prefix := range []string{"", "a", "a/", "..", "/", ".tmp"} {
		if n := len(w.list(prefix)); n != 0 {
			w.Errorf("List %q of an empty store returns %d blobs", prefix, n)
		}
	}
}

func testPrefixes(w *world) {
	keys := []string{"aa/one", "aa/two", "aa/one.b", "ab/one", "b", "aa.x", "aa-x/y", "c/d/e/f", "c/d/e/g", "c/d/h", "c/de", "z/z/z"}
	for _, key := range keys {
		w.put(key, []byte(key))
	}
	prefixes := []string{"", "/", ".", "..", "../", "./aa", "aa//", "A", "aa/\x00", "\xff", "aa/one/", "z/z/z/", "none", "none/", "b/b"}
	for _, key := range keys {
		for i := range len(key) {
			prefixes = append(prefixes, key[:i+1])
		}
	}
	slices.Sort(prefixes)
	for _, prefix := range slices.Compact(prefixes) {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		infos := w.list(prefix)
		if got := slices.Sorted(maps.Keys(infos)); !slices.Equal(got, want) {
			w.Errorf("List %q: %q, want %q", prefix, got, want)
		}
		for key, info := range infos {
			w.wantInfo("List", info, key, len(key))
		}
	}
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

func testStopList(w *world) {
	for i := range 20 {
		w.put(fmt.Sprintf("%d/%d", i%3, i), []byte("content"))
	}
	for stop := range 21 {
		n := 0
		for _, err := range w.store.List(w.ctx, "") {
			w.check("List", err)
			if n++; n > stop {
				break
			}
		}
		if n != min(stop+1, 20) {
			w.Errorf("a list that ends after %d blobs has %d", stop+1, n)
		}
	}
	// The caller of List may delete blobs during the iteration.
	for info, err := range w.store.List(w.ctx, "") {
		w.check("List", err)
		w.check("Delete", w.store.Delete(w.ctx, info.Key))
	}
	if n := len(w.list("")); n != 0 {
		w.Errorf("%d blobs are left of those that were listed and deleted", n)
	}
}

// testListMeanwhile lists while blobs are added and deleted: the others are always listed, and none
// is listed with a smaller size.
func testListMeanwhile(w *world) {
	const size = 300 * kib
	stay := make(map[string]bool)
	for i := range 20 {
		key := fmt.Sprintf("%d/stays", i)
		stay[key] = true
		w.put(key, w.content(key, size))
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for worker := range 3 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				key := fmt.Sprintf("%d/comes-%d", i%20, worker)
				_, err := w.store.Put(w.ctx, key, newOdd(w.content(key, size)))
				if err == nil {
					err = w.store.Delete(w.ctx, key)
				}
				if err != nil {
					w.Errorf("Put and Delete %s: %v", key, err)
					return
				}
			}
		})
	}
	until := time.Now().Add(300 * time.Millisecond)
	for lists := 0; lists < 5 || time.Now().Before(until); lists++ {
		infos, err := w.tryList(w.ctx, "")
		if err != nil {
			w.Errorf("List: %v", err)
			break
		}
		for key, info := range infos {
			w.wantInfo("List", info, key, size)
		}
		for key := range stay {
			if _, ok := infos[key]; !ok {
				w.Errorf("List leaves out %s", key)
			}
		}
	}
	close(done)
	all.Wait()
}
