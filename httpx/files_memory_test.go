//go:build long

package httpx_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// zeros is a blob store in which every blob has the given size and consists of zeros, except the marker.
type zeros struct {
	blobstore.Store
	size int64
}

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
		length = s.size - offset
	}
	return io.NopCloser(io.LimitReader(nothing{}, length)), blobstore.Info{Size: s.size}, nil
}

// nothing is an endless reader of zeros.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A counter is a ResponseWriter that counts bytes and drops them.
type counter struct {
	header http.Header
	status int
	bytes  int64
}

func (d *counter) Header() http.Header    { return d.header }
func (d *counter) WriteHeader(status int) { d.status = status }
func (d *counter) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
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
	w := newWorld(tb, openMemory(tb), nil)
	var err error
	w.svc, err = formsvc.New(w.store, &formsvc.Options{Blobs: zeros{Store: memblob.New(), size: formsvc.DefaultMaxFile}})
	if err != nil {
		tb.Fatal(err)
	}
	w.serve(&httpx.Options{})
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
	raw := w.request("POST", list, "")
	largeBody(raw, "", "")
	form := w.request("POST", list, "", asForm)
	largeBody(form, before, after)
	for what, r := range map[string]*http.Request{"raw": raw, "form": form} {
		if d, n := w.allocated(r); d.status != 201 || n > bound {
			t.Errorf("%s: status %d, %d bytes allocated", what, d.status, n)
		}
	}
	location := "/v1/files/" + w.do("GET", list+"?limit=1", "").is(200, "").body[len(`{"items":[{"uuid":"`):][:36]
	if d, n := w.allocated(w.request("GET", location, "")); d.status != 200 || d.bytes != formsvc.DefaultMaxFile || n > bound {
		t.Errorf("download: status %d, %d bytes, %d allocated", d.status, d.bytes, n)
	}
}

// G4: hostile forms take no more memory than the buffers of any upload.
func TestMemoryOfHostileForms(t *testing.T) {
	const bound = 512 << 10
	w := newWorld(t, openMemory(t), nil)
	list := w.uploads()
	for what, body := range map[string]string{
		"many parts":        strings.Repeat("--"+boundary+"\r\n"+part("module", "x")+"\r\n", 10_001),
		"many unknown":      strings.Repeat("--"+boundary+"\r\n"+part("x", "x")+"\r\n", 10_001),
		"many headers":      "--" + boundary + "\r\n" + strings.Repeat("X: x\r\n", 100_000),
		"names of headers":  "--" + boundary + "\r\n" + strings.Repeat(strings.Repeat("x", 100)+": x\r\n", 9_000),
		"long name":         formOf(part(strings.Repeat("x", 900_000), "x")),
		"long header":       "--" + boundary + "\r\nX: " + strings.Repeat("x", 900_000),
		"folded header":     "--" + boundary + "\r\nX: x\r\n" + strings.Repeat(" x\r\n", 200_000),
		"preamble":          strings.Repeat("x\r\n", 300_000),
		"line":              strings.Repeat("x", 900_000),
		"epilogue":          formOf(filePart("x")) + strings.Repeat("x", 900_000),
		"module":            formOf(part("module", strings.Repeat("x", 900_000)), filePart("x")),
		"module after":      formOf(filePart("x"), part("module", strings.Repeat("x", 900_000))),
		"parameters":        formOf(`Content-Disposition: form-data; name=file` + strings.Repeat(";a=b", 200_000) + "\r\n\r\nx"),
		"pieces of a name":  formOf(`Content-Disposition: form-data; name=file; filename*9999=x` + strings.Repeat("x", 10_000) + "\r\n\r\nx"),
		"almost boundaries": strings.Repeat("--"+boundary+"x\r\n", 50_000),
	} {
		r := w.request("POST", list, body, asForm)
		if d, n := w.allocated(r); d.status < 400 || d.status > 422 && what != "pieces of a name" || n > bound {
			t.Errorf("%s: status %d, %d bytes allocated", what, d.status, n)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	w := largeFiles(b)
	list := w.uploads()
	server := httptest.NewServer(w.api)
	defer server.Close()
	before, after, _ := strings.Cut(formOf(filePart("CONTENT")), "CONTENT")
	run := func(name string, request func() *http.Request) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(formsvc.DefaultMaxFile)
			b.ReportAllocs()
			for b.Loop() {
				r := request()
				u := r.URL
				u.Scheme, u.Host = "http", server.Listener.Addr().String()
				r.RequestURI = ""
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode > 201 {
					b.Fatal(response.StatusCode, err)
				}
				_ = response.Body.Close()
			}
		})
	}
	run("raw", func() *http.Request {
		r := w.request("POST", list, "")
		largeBody(r, "", "")
		return r
	})
	run("form", func() *http.Request {
		r := w.request("POST", list, "", asForm)
		largeBody(r, before, after)
		return r
	})
	location := "/v1/files/" + w.do("GET", list+"?limit=1", "").is(200, "").body[len(`{"items":[{"uuid":"`):][:36]
	run("download", func() *http.Request { return w.request("GET", location, "") })
}

// A9: a body that is nested too deeply takes no more memory than any other of its size.
func TestDeepBodiesTakeNoMoreMemory(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	const size = 4_000_000
	flat, n := w.allocated(w.request("POST", "/v1/campaigns", `{"a":`+strings.Repeat(" ", size)))
	deep, most := w.allocated(w.request("POST", "/v1/campaigns", `{"a":`+strings.Repeat("[", size)))
	if flat.status != 400 || deep.status != 400 || most > n+1<<20 {
		t.Errorf("status %d, %d bytes allocated; without depth %d, %d bytes", deep.status, most, flat.status, n)
	}
	w.do("POST", "/v1/campaigns", `{"a":`+strings.Repeat("[", size)).is(400, "too_deep")
	w.do("PUT", w.campaign(plainCampaign), `{"title":"x","uuid":`+strings.Repeat("[", 65)+strings.Repeat("]", 65)+`}`).is(400, "too_deep")
	w.do("PUT", w.campaign(plainCampaign), `{"title":"x","uuid":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`).is(200, "")
}
