//go:build long

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/blobstore/s3blob/s3test"
)

var errLost = errors.New("the answer was lost")

// pass sends a request to the real server.
func pass(req *http.Request) (*http.Response, error) { return http.DefaultTransport.RoundTrip(req) }

// What a request is.
func isPut(req *http.Request) bool { return req.Method == http.MethodPut && req.URL.RawQuery == "" }
func isPart(req *http.Request) bool {
	return req.Method == http.MethodPut && req.URL.Query().Has("partNumber")
}
func isComplete(req *http.Request) bool {
	return req.Method == http.MethodPost && req.URL.Query().Has("uploadId")
}

func TestTemporaryFailuresAreRetried(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	lose := func(req *http.Request) (*http.Response, error) {
		resp, err := pass(req)
		if err == nil {
			_ = resp.Body.Close()
			err = errLost
		}
		return nil, err
	}
	slowDown := func(req *http.Request) (*http.Response, error) { return answer(req, 503, "SlowDown"), nil }
	conflict := func(req *http.Request) (*http.Response, error) {
		return answer(req, 409, "ConditionalRequestConflict"), nil
	}
	for _, c := range []struct {
		name   string
		size   int
		which  func(*http.Request) bool
		fail   transport
		times  int64
		wanted error
	}{
		{"a lost answer to a small one", 1000, isPut, lose, 1, nil},
		{"two lost answers to a small one", 1000, isPut, lose, 2, nil},
		{"a lost answer to a part", 12 * mib, isPart, lose, 1, nil},
		{"a lost answer to the last request", 12 * mib, isComplete, lose, 1, nil},
		{"a busy server and a small one", 1000, isPut, slowDown, 2, nil},
		{"a busy server and a part", 12 * mib, isPart, slowDown, 2, nil},
		{"a busy server and the last request", 12 * mib, isComplete, slowDown, 2, nil},
		{"a server that stays busy", 1000, isPut, slowDown, 3, blobstore.ErrUnavailable},
		{"a server that stays busy for parts", 12 * mib, isPart, slowDown, 1000, blobstore.ErrUnavailable},
		{"answers that stay lost", 1000, isPut, func(*http.Request) (*http.Response, error) { return nil, errLost }, 3, errLost},
		{"an unclear conflict", 1000, isPut, conflict, 2, nil},
		{"an unclear conflict at the last request", 12 * mib, isComplete, conflict, 2, nil},
		{"a conflict that stays", 12 * mib, isComplete, conflict, 1000, blobstore.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var failed atomic.Int64
			store := newStoreAt(t, server, strings.ReplaceAll(c.name, " ", "-"), &s3blob.Options{
				Transport: transport(func(req *http.Request) (*http.Response, error) {
					if c.which(req) && failed.Add(1) <= c.times {
						return c.fail(req)
					}
					return pass(req)
				}),
			})
			_, err := store.Put(t.Context(), "blob", bytes.NewReader(pattern(c.size)))
			if failed.Load() == 0 {
				t.Fatal("nothing failed")
			}
			if c.wanted == nil && err == nil {
				wantContent(t, store, "blob", pattern(c.size))
				return
			}
			if !errors.Is(err, c.wanted) || c.wanted != nil && !errors.Is(err, blobstore.ErrUnavailable) {
				t.Errorf("Put: %v, want %v", err, c.wanted)
			}
			if keys, err := list(t.Context(), store); err != nil || len(keys) > 0 {
				t.Errorf("%v is there, %v", keys, err)
			}
		})
	}
}

// Put must not mistake another Put's blob for its own.
func TestKeyTakenMeanwhile(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for _, status := range []int{409, 503} {
		for _, size := range []int{1000, 12 * mib} {
			t.Run(fmt.Sprintf("answer %d to %d bytes", status, size), func(t *testing.T) {
				t.Parallel()
				prefix := fmt.Sprintf("%d-%d", status, size)
				other := newStoreAt(t, server, prefix, nil)
				var done atomic.Bool
				store := newStoreAt(t, server, prefix, &s3blob.Options{
					Transport: transport(func(req *http.Request) (*http.Response, error) {
						if (isPut(req) || isComplete(req)) && !done.Swap(true) {
							mustPut(t, other, "blob", []byte("of another"))
							return answer(req, status, map[int]string{409: "ConditionalRequestConflict", 503: "SlowDown"}[status]), nil
						}
						return pass(req)
					}),
				})
				_, err := store.Put(t.Context(), "blob", bytes.NewReader(pattern(size)))
				if !errors.Is(err, fs.ErrExist) || errors.Is(err, blobstore.ErrUnavailable) {
					t.Errorf("Put: %v, want ErrExist", err)
				}
				wantContent(t, other, "blob", []byte("of another"))
				if left := uploads(t, server, prefix); len(left) > 0 {
					t.Errorf("incomplete uploads are left: %v", left)
				}
			})
		}
	}
}

// A server reports a size that is smaller than the blob.
func TestServerReportsAShorterBlob(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	var completed atomic.Bool
	store := newStore(t, server, &s3blob.Options{Transport: transport(func(req *http.Request) (*http.Response, error) {
		resp, err := pass(req)
		if err == nil && completed.Load() && req.Method == http.MethodHead {
			resp.Header.Set("Content-Length", "1000")
		}
		completed.CompareAndSwap(false, isComplete(req))
		return resp, err
	})})
	if _, err := store.Put(t.Context(), "blob", zeros(12*mib)); !errors.Is(err, blobstore.ErrUnavailable) {
		t.Errorf("Put: %v, want ErrUnavailable", err)
	}
	wantNothing(t, server)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{403, "AccessDenied", blobstore.ErrUnavailable},
		{403, "SignatureDoesNotMatch", blobstore.ErrUnavailable},
		{403, "RequestTimeTooSkewed", blobstore.ErrUnavailable},
		{403, "InvalidAccessKeyId", blobstore.ErrUnavailable},
		{404, "NoSuchBucket", blobstore.ErrUnavailable},
		{404, "AnythingElse", blobstore.ErrUnavailable},
		{301, "PermanentRedirect", blobstore.ErrUnavailable},
		{400, "ExpiredToken", blobstore.ErrUnavailable},
		{400, "BadDigest", blobstore.ErrUnavailable},
		{500, "InternalError", blobstore.ErrUnavailable},
		{501, "NotImplemented", blobstore.ErrUnavailable},
		{502, "", blobstore.ErrUnavailable},
		{503, "SlowDown", blobstore.ErrUnavailable},
		{403, "QuotaExceeded", blobstore.ErrNoSpace},
		{507, "XMinioStorageFull", blobstore.ErrNoSpace},
		{507, "InsufficientStorage", blobstore.ErrNoSpace},
		{507, "", blobstore.ErrNoSpace},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			store := must(s3blob.New(s3blob.Bucket{Name: "bucket"}, s3blob.StaticCredentials("key", "secret", ""), &s3blob.Options{
				Transport: transport(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodHead && strings.HasSuffix(req.URL.Path, "/new") {
						return answer(req, 404, "NoSuchKey"), nil // so that Put goes on
					}
					return answer(req, c.status, c.code), nil
				}),
			}))
			errs := everyMethod(t.Context(), store)
			for _, method := range []string{"Put", "Open", "List", "Clean", "Delete"} {
				if !errors.Is(errs[method], c.want) {
					t.Errorf("%s: %v, want %v", method, errs[method], c.want)
				}
			}
			if errors.Is(errs["Open"], fs.ErrNotExist) {
				t.Errorf("Open: %v, as if the blob were missing", errs["Open"])
			}
		})
	}
}

// A server that isn't S3 replies with 404 to everything.
func TestServerThatIsNotS3(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	store := must(s3blob.New(s3blob.Bucket{Name: "bucket", Endpoint: server.URL}, s3blob.StaticCredentials("key", "secret", ""), nil))
	errs := everyMethod(t.Context(), store)
	delete(errs, "Delete") // Delete can't detect it
	wantUnavailable(t, errs)
}

// A page is the response to the first request for a list.
type page struct{ body []byte }

func (p *page) record(req *http.Request) (*http.Response, error) {
	resp, err := pass(req)
	if err == nil && !req.URL.Query().Has("continuation-token") {
		p.body, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(p.body))
	}
	return resp, err
}

func (p *page) replay(req *http.Request) (*http.Response, error) {
	resp := answer(req, http.StatusOK, "")
	resp.Body = io.NopCloser(bytes.NewReader(p.body))
	return resp, nil
}

// An incomplete list must not look complete, since the sweep relies on it.
func TestListFails(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	const blobs = 1001 // one more than a page
	for i := range blobs {
		noError(t, os.WriteFile(filepath.Join(server.Dir, fmt.Sprintf("blob-%04d", i)), nil, 0o600))
	}
	// The first page arrives at once, so that a short time limit suffices for the second.
	first := new(page)
	keys, err := list(t.Context(), newStore(t, server, &s3blob.Options{Transport: transport(first.record)}))
	if err != nil || len(keys) != blobs {
		t.Fatalf("%d blobs, %v; want %d", len(keys), err, blobs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		second transport // for the second page
		want   error
	}{
		"an error": {
			t.Context(), func(req *http.Request) (*http.Response, error) { return answer(req, 500, "InternalError"), nil },
			blobstore.ErrUnavailable,
		},
		"a server that falls silent": {
			t.Context(), func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			},
			blobstore.ErrUnavailable,
		},
		"half an answer": {
			t.Context(), func(req *http.Request) (*http.Response, error) {
				resp, err := pass(req)
				if err == nil {
					body, _ := io.ReadAll(resp.Body)
					resp.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2]))
				}
				return resp, err
			}, blobstore.ErrUnavailable,
		},
		"a context that ends": {
			ctx, func(req *http.Request) (*http.Response, error) { cancel(); return nil, context.Canceled }, context.Canceled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, server, &s3blob.Options{
				Timeout: 5 * time.Second,
				Transport: transport(func(req *http.Request) (*http.Response, error) {
					if req.URL.Query().Has("continuation-token") {
						return c.second(req)
					}
					return first.replay(req)
				}),
			})
			if keys, err := list(c.ctx, store); !errors.Is(err, c.want) || len(keys) != 1000 {
				t.Errorf("%d blobs, %v; want 1000 and %v", len(keys), err, c.want)
			}
		})
	}
}

// damage is a body with a changed byte in the middle.
type damage struct {
	io.ReadCloser

	at int
}

func (d *damage) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if d.at >= 0 && d.at < n {
		p[d.at] ^= 1
	}
	d.at -= n
	return n, err
}

// The server refuses content that was changed in transit, over both schemes.
func TestDamageInTransit(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	target := must(url.Parse(server.Endpoint))
	secure := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorLog: log.New(io.Discard, "", 0), // requests are canceled on purpose
	})
	defer secure.Close()
	for name, c := range map[string]struct {
		endpoint string
		base     http.RoundTripper
	}{
		"http":  {server.Endpoint, http.DefaultTransport},
		"https": {secure.URL, secure.Client().Transport},
	} {
		var damaged atomic.Bool
		opts := &s3blob.Options{Transport: transport(func(req *http.Request) (*http.Response, error) {
			if damaged.Load() && (isPut(req) || isPart(req)) {
				req.Body = &damage{req.Body, int(req.ContentLength / 2)}
			}
			return c.base.RoundTrip(req)
		})}
		bucket := s3blob.Bucket{Name: server.Bucket, Endpoint: c.endpoint, Addressing: s3blob.PathAddressing}
		store := newStoreOf(t, bucket, server, opts)
		for _, size := range []int{1000, mib, 12 * mib} {
			damaged.Store(true)
			_, err := store.Put(t.Context(), "blob", bytes.NewReader(pattern(size)))
			if !errors.Is(err, blobstore.ErrUnavailable) {
				t.Errorf("%s, %d damaged bytes: %v, want ErrUnavailable", name, size, err)
			}
			wantNothing(t, server)
			damaged.Store(false)
			mustPut(t, store, "blob", pattern(size))
			wantContent(t, store, "blob", pattern(size))
			noError(t, store.Delete(t.Context(), "blob"))
		}
	}
}

// Responses to a range request with another range.
func TestWrongRanges(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	mustPut(t, newStore(t, server, nil), "blob", pattern(1000))
	for _, header := range []string{
		"", "bytes 0-9/1000", "bytes 100-109/*", "bytes 100-99/1000", "bytes 100-2000/1000", "100-109", "bytes x-y/z",
	} {
		store := newStore(t, server, &s3blob.Options{Transport: transport(func(req *http.Request) (*http.Response, error) {
			resp, err := pass(req)
			if err == nil {
				resp.Header.Set("Content-Range", header)
			}
			return resp, err
		})})
		if r, _, err := store.Open(t.Context(), "blob", 100, 10); !errors.Is(err, blobstore.ErrUnavailable) {
			t.Errorf("Content-Range %q: %v, %v; want ErrUnavailable", header, r, err)
		}
	}
}
