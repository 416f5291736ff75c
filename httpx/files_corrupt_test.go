package httpx_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// G10: damage anywhere in a file is reported before the first byte, or cuts the reply; wrong bytes never end cleanly.
func TestDamagedFilesAreNotServed(t *testing.T) {
	const size = 600_000
	content := noise(size)
	w := newWorld(t, nil)
	path := w.upload(content)
	server := httptest.NewServer(w.api)
	defer server.Close()
	cut, told := 0, 0
	for _, damage := range []int64{1, 262_144, 262_145, 524_289, size} {
		for _, row := range []struct{ flip, short int64 }{{damage, 0}, {0, damage}} {
			for _, ranges := range []string{
				"", "bytes=0-", "bytes=0-0", "bytes=262143-262144", "bytes=300000-", "bytes=-1", "bytes=10-19,300000-300009", "bytes=-1,0-0",
			} {
				what := fmt.Sprintf("%v, %s", row, ranges)
				w.blobs.damage(row.flip, row.short)
				status, body, err := w.over(server, "GET", path, nil, header("Range", ranges))
				if err != nil {
					cut++
					continue
				}
				if status >= 500 {
					if status != 502 || !strings.Contains(body, "blob_corrupt") {
						t.Errorf("%s: %d %s", what, status, body)
					}
					told++
					continue
				}
				w.blobs.damage(0, 0)
				if good, want, err := w.over(server, "GET", path, nil, header("Range", ranges)); err != nil || status != good || !sameParts(body, want) {
					t.Errorf("%s: wrong bytes with a clean end", what)
				}
			}
		}
	}
	server.Close()
	if log := w.log.String(); !strings.Contains(log, "checksum") || !strings.Contains(log, "route=/v1/files/{file_uuid}") {
		t.Errorf("log: %.500s", log)
	}
	if cut == 0 || told == 0 {
		t.Errorf("%d cut, %d told", cut, told)
	}
}

// sameParts compares two bodies; boundaries of multipart bodies may differ.
func sameParts(a, b string) bool {
	plain := func(s string) string {
		if line, _, ok := strings.Cut(s, "\r\n"); ok && strings.HasPrefix(line, "--") {
			return strings.ReplaceAll(s, line, "")
		}
		return s
	}
	return plain(a) == plain(b)
}

// Replies and headers if the content can't be read.
func TestUnreadableFiles(t *testing.T) {
	w := newWorld(t, nil)
	content := noise(600_000)
	path := w.upload(content)
	replace := func(content string) {
		t.Helper()
		key := formsvc.BlobKey(formsvc.ID(strings.TrimPrefix(path, "/v1/files/")))
		err := w.blobs.Delete(t.Context(), key)
		if err == nil && content != "" {
			_, err = w.blobs.Store.Put(t.Context(), key, strings.NewReader(content))
		}
		noError(t, err)
	}
	for _, row := range []struct {
		what   string
		fault  func()
		status int
		code   string
	}{
		{"unavailable", func() { w.blobs.openErr = fmt.Errorf("hunter2: %w", blobstore.ErrUnavailable) }, 503, "unavailable"},
		{"any error", func() { w.blobs.openErr = errors.New("hunter2") }, 500, "internal"},
		{"a panic", func() { w.blobs.openErr, w.blobs.panic = nil, "hunter2" }, 500, "internal"},
		{"an early end", func() { w.blobs.panic, w.blobs.short = nil, 5 }, 502, "blob_corrupt"},
		{"an error while reading", func() { w.blobs.readErr = blobstore.ErrUnavailable }, 503, "unavailable"},
		{"a short blob", func() { w.blobs.short, w.blobs.readErr = 0, nil; replace(content[:599_999]) }, 502, "blob_corrupt"},
		{"a long blob", func() { replace(content + "x") }, 502, "blob_corrupt"},
		{"no blob", func() { replace("") }, 502, "blob_corrupt"},
	} {
		row.fault()
		for _, ranges := range []string{"", "bytes=0-0", "bytes=0-9,20-29"} {
			w.log.Reset()
			a := w.do("GET", path, "", header("Range", ranges)).is(row.status, row.code)
			a.what += " with " + row.what
			want := []string{"Cache-Control", "Content-Length", "Content-Type", "X-Content-Type-Options", "X-Request-Id"}
			if row.status == 503 {
				want = slices.Insert(want, 3, "Retry-After")
			}
			if a.hasOnly(want...); strings.Contains(a.body, "hunter2") || !strings.Contains(w.log.String(), "error=") {
				a.errorf("%s\nlog: %s", a.body, w.log)
			}
		}
		w.do("HEAD", path, "").is(200, "")
		w.do("GET", path, "", header("If-None-Match", "*")).is(304, "")
	}
}
