package blobtest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing/iotest"
)

// sizes are those at which stores and their callers behave differently: 256 KiB is a block of
// formsvc, 5 MiB the smallest part of S3.
func sizes() []int {
	return []int{0, 1, 256*kib - 1, 256 * kib, 256*kib + 1, 5*mib - 1, 5 * mib, 5*mib + 1, 10 * mib, large}
}

func roundTripTests() []test {
	return []test{
		{"sizes", testSizes},
		{"odd readers", testOddReaders},
		{"copies", testCopies},
		{"reading twice at once", testReadTwice},
		{"reading after Close", testReadClosed},
	}
}

func testSizes(w *world) {
	for _, size := range sizes() {
		key := fmt.Sprintf("size/%d", size)
		want := w.content(key, size)
		r := &watched{Reader: bytes.NewReader(want)}
		n, err := w.store.Put(w.ctx, key, r)
		w.check("Put "+key, err)
		if n != int64(size) {
			w.Errorf("Put %s: %d bytes", key, n)
		}
		r.wantUnread(w)
		w.wantBlob(key, want)
	}
}

func testOddReaders(w *world) {
	for _, size := range []int{0, 1, 256 * kib, 5 * mib, large} {
		want := w.content("odd", size)
		for name, r := range map[string]io.Reader{
			"odd":   newOdd(want),
			"joint": iotest.DataErrReader(bytes.NewReader(want)),
			"begun": begun(want),
		} {
			key := fmt.Sprintf("%s/%d", name, size)
			n, err := w.store.Put(w.ctx, key, r)
			w.check("Put "+key, err)
			if n != int64(size) {
				w.Errorf("Put %s: %d bytes", key, n)
			}
			w.wantBlob(key, want)
		}
	}
}

// begun returns a reader that could seek back to before the content.
func begun(content []byte) io.Reader {
	r := bytes.NewReader(slices.Concat([]byte("before"), content))
	_, _ = r.Seek(int64(len("before")), io.SeekStart) // never fails
	return r
}

// testCopies changes the reader's bytes after Put, and the bytes that were read.
func testCopies(w *world) {
	want := w.content("copies", 300*kib)
	given := bytes.Clone(want)
	w.put("copies", given)
	clear(given)
	got, _, err := w.read("copies", 0, -1)
	w.check("read", err)
	clear(got)
	w.wantBlob("copies", want)
}

// testReadTwice reads a blob with two readers alternately.
func testReadTwice(w *world) {
	want := w.content("twice", large)
	w.put("twice", want)
	a, _, err := w.store.Open(w.ctx, "twice", 0, -1)
	w.check("Open", err)
	defer func() { _ = a.Close() }()
	b, _, err := w.store.Open(w.ctx, "twice", 0, -1)
	w.check("Open", err)
	defer func() { _ = b.Close() }()
	var gotA, gotB bytes.Buffer
	for i := range 12 {
		n := int64(i * 50 * kib)
		_, err := io.CopyN(&gotA, a, n)
		w.check("read", err)
		_, err = io.CopyN(&gotB, b, 600*kib-n)
		w.check("read", err)
	}
	_, err = gotA.ReadFrom(a)
	w.check("read", err)
	_, err = gotB.ReadFrom(b)
	w.check("read", err)
	if d := differ(gotA.Bytes(), want); d != "" {
		w.Errorf("the first reader gives %s", d)
	}
	if d := differ(gotB.Bytes(), want); d != "" {
		w.Errorf("the second reader gives %s", d)
	}
}

func testReadClosed(w *world) {
	w.put("closed", w.content("closed", 300*kib))
	r, _, err := w.store.Open(w.ctx, "closed", 0, -1)
	w.check("Open", err)
	_, err = io.CopyN(io.Discard, r, 100)
	w.check("read", err)
	w.check("Close", r.Close())
	if n, err := io.Copy(io.Discard, r); err == nil {
		w.Errorf("a closed reader gives %d bytes and ends", n)
	}
}

func rangeTests() []test {
	return []test{
		{"tables", testRanges},
		{"bad offsets", testBadOffsets},
	}
}

func testRanges(w *world) {
	for _, size := range []int{0, 1, 1000, 600 * kib} {
		key := fmt.Sprintf("range/%d", size)
		want := w.content(key, size)
		w.put(key, want)
		for _, offset := range []int{0, 1, size / 2, size - 1, size, size + 1, size + mib} {
			for _, length := range []int64{0, 1, 2, int64(size) / 3, int64(size), int64(size) + 1, 1<<63 - 1, -1, -1 << 63} {
				if offset < 0 {
					continue
				}
				part := want[min(offset, size):]
				if length >= 0 {
					part = part[:min(length, int64(len(part)))]
				}
				got, info, err := w.read(key, int64(offset), length)
				what := fmt.Sprintf("%d bytes at %d of %d", length, offset, size)
				w.check(what, err)
				if d := differ(got, part); d != "" {
					w.Errorf("%s: %s", what, d)
				}
				w.wantInfo("Open of "+what, info, key, size)
			}
		}
	}
	got, _, err := w.read("range/1000", 1<<63-1, 1<<63-1)
	if err != nil || len(got) > 0 {
		w.Errorf("the last range there can be: %d bytes and error %v", len(got), err)
	}
}

func testBadOffsets(w *world) {
	w.put("bad", w.content("bad", 1000))
	for _, offset := range []int64{-1, -1000, -1 << 63} {
		for _, length := range []int64{0, 10, -1} {
			_, _, err := w.read("bad", offset, length)
			w.wantError(fmt.Sprintf("%d bytes at %d", length, offset), err, fs.ErrInvalid)
		}
	}
}
