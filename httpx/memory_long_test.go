//go:build long

package httpx_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
)

// zeros is a blob store in which every blob has the largest allowed size and consists of zeros, except the marker.
type zeros struct{ blobstore.Store }

func (s zeros) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if key == formsvc.MarkerKey {
		return s.Store.Put(ctx, key, r)
	}
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 256<<10))
}

func (s zeros) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	if key == formsvc.MarkerKey {
		return s.Store.Open(ctx, key, offset, length)
	}
	if length < 0 {
		length = formsvc.DefaultMaxFile - offset
	}
	return io.NopCloser(io.LimitReader(nothing{}, length)), blobstore.Info{Size: formsvc.DefaultMaxFile}, nil
}

// nothing is an endless reader of zeros.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A counter is a ResponseWriter that counts bytes and lines and drops them.
type counter struct {
	header http.Header
	status int
	bytes  int64
	lines  int
}

func (d *counter) Header() http.Header    { return d.header }
func (d *counter) WriteHeader(status int) { d.status = status }
func (d *counter) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
	d.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// allocated sends a request and returns how many bytes it allocated.
func (w *world) allocated(r *http.Request) (*counter, uint64) {
	var before, after runtime.MemStats
	d := &counter{header: http.Header{}}
	runtime.ReadMemStats(&before)
	w.bare.ServeHTTP(d, r) // without the contract check, which allocates too
	runtime.ReadMemStats(&after)
	return d, after.TotalAlloc - before.TotalAlloc
}

// largeFiles returns a world whose blobs have the largest allowed size.
func largeFiles(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb, nil)
	w.use(w.store, nil, func(o *formsvc.Options) { o.Blobs, o.MaxFile = zeros{memblob.New()}, 0 })
	return w
}

// largeBody sends zeros, with text before and after them.
func largeBody(r *http.Request, before, after string) {
	r.Body = io.NopCloser(io.MultiReader(
		strings.NewReader(before), io.LimitReader(nothing{}, formsvc.DefaultMaxFile), strings.NewReader(after)))
	r.ContentLength = int64(len(before)) + formsvc.DefaultMaxFile + int64(len(after))
}

// Memory stays flat whatever the size of a file.
func TestMemoryOfLargeFiles(t *testing.T) {
	const bound = 4 << 20
	w := largeFiles(t)
	list := w.uploads()
	before, after, _ := strings.Cut(formOf(filePart("CONTENT")), "CONTENT")
	raw, form := w.request("POST", list, ""), w.request("POST", list, "", asForm)
	largeBody(raw, "", "")
	largeBody(form, before, after)
	for what, r := range map[string]*http.Request{"raw": raw, "form": form} {
		if d, n := w.allocated(r); d.status != 201 || n > bound {
			t.Errorf("%s: status %d, %d bytes allocated", what, d.status, n)
		}
	}
	ids, _ := w.page(list)
	if d, n := w.allocated(w.request("GET", "/v1/files/"+ids[0], "")); d.status != 200 || d.bytes != formsvc.DefaultMaxFile || n > bound {
		t.Errorf("download: status %d, %d bytes, %d allocated", d.status, d.bytes, n)
	}
}

// V2, A9: small or deeply nested elements of a body must not take much memory. The limit is that of encoding/json into any, on which
// the reliability goals are based.
func TestMemoryOfHostileBodies(t *testing.T) {
	w := newWorld(t, nil)
	var headers strings.Builder
	for i := range 1 << 20 / 8 {
		fmt.Fprintf(&headers, `"%x":"",`, i)
	}
	for name, body := range map[string]string{
		"modules":  `{"title":"x","modules":[` + strings.Repeat("{},", 1<<20/3),
		"options":  `{"title":"x","modules":[{"options":[` + strings.Repeat(`"",`, 1<<20/3),
		"metadata": `{"title":"x","metadata":{` + strings.Repeat(`"":"",`, 1<<20/6),
		"unknown":  `{"x":[` + strings.Repeat("{},", 1<<20/3),
		"arrays":   `{"x":[` + strings.Repeat("[],", 1<<20/3),
		"depth":    `{"x":` + strings.Repeat("[", 1<<20),
		"faults":   `{"title":"x","modules":[{"options":[` + strings.Repeat("1,", 1<<20/2),
		"one key":  `{"` + strings.Repeat("k", 1<<20) + `":1}`,
		"one text": `{"title":"` + strings.Repeat("x", 1<<20) + `"}`,
		"events":   `{"events":[` + strings.Repeat(`"",`, 1<<20/3),
		"numbers":  `{"events":[` + strings.Repeat("1,", 1<<20/2),
		"headers":  `{"headers":{` + headers.String(),
	} {
		path := "/v1/campaigns"
		if strings.HasPrefix(body, `{"events"`) || strings.HasPrefix(body, `{"headers"`) {
			path = "/v1/webhooks"
		}
		if d, n := w.allocated(w.request("POST", path, body)); d.status < 400 || d.status > 422 || n > 45<<20 {
			t.Errorf("%s: status %d, 1 MiB allocates %d KiB", name, d.status, n>>10)
		}
	}
}

// B9: a large export. Memory stays flat, however much is stored.
func TestLargeExports(t *testing.T) {
	const rows, limit = 25_000, 64 << 20 // 200 MB of answers
	w := newWorldOn(t, openSQLite(t), nil)
	w.clock = time.Now
	campaign := w.campaign(plainCampaign)
	body := answers(`{"text":{"value":["` + strings.Repeat("0", 8_000) + `"]}}`)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for range rows / 50 {
				d := &counter{header: http.Header{}}
				if w.bare.ServeHTTP(d, w.request("POST", campaign+"/responses", body)); d.status != 201 {
					t.Errorf("status %d", d.status)
				}
			}
		})
	}
	group.Wait()
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that garbage doesn't count
	for kind, header := range map[string]int{".ndjson": 0, ".csv": 1, ".ndjson?order=asc&status=pending": 0, ".xlsx": -1, ".zip": -1} {
		peak := watchMemory()
		d := &counter{header: http.Header{}}
		w.bare.ServeHTTP(d, w.request("GET", campaign+"/responses"+kind, ""))
		if added := peak(); d.status != 200 || header >= 0 && d.lines-header != rows || added > limit {
			t.Errorf("%s: %d lines, want %d; %d MiB of memory added, want at most %d", kind, d.lines, rows, added>>20, limit>>20)
		}
	}
}

// watchMemory returns a function that ends the measurement. It returns by how many bytes the heap and the stacks grew at most.
func watchMemory() (peak func() int64) {
	runtime.GC()
	used := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
	}
	first := used()
	most := first
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			most = max(most, used())
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return func() int64 {
		close(done)
		watch.Wait()
		return most - first
	}
}
