package httpx_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// maxFile is the upload limit of the worlds: a few blocks and a bit.
const maxFile = 1_000_000

// faultyBlobs fails or returns wrong bytes on demand. Set its fields while no request is in progress.
type faultyBlobs struct {
	blobstore.Store
	putErr, openErr error
	statErr         error
	stored          func(context.Context) error // after a Put
	panic           any
	flip            int64 // the byte that is returned wrong, counted from 1
	short           int64 // bytes after which a content ends, or fails with readErr
	readErr         error

	mu    sync.Mutex
	opens [][2]int64 // offset and length of each opened range
	open  int        // bodies that weren't closed
}

func (s *faultyBlobs) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if s.putErr != nil {
		return 0, s.putErr
	}
	n, err := s.Store.Put(ctx, key, r)
	if err == nil && s.stored != nil {
		err = s.stored(ctx)
	}
	return n, err
}

func (s *faultyBlobs) Stat(ctx context.Context, key string) (blobstore.Info, error) {
	if s.statErr != nil {
		return blobstore.Info{}, s.statErr
	}
	return s.Store.Stat(ctx, key)
}

func (s *faultyBlobs) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blobstore.Info, error) {
	if s.openErr != nil {
		return nil, blobstore.Info{}, s.openErr
	}
	body, info, err := s.Store.Open(ctx, key, offset, length)
	if err != nil {
		return nil, info, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens = append(s.opens, [2]int64{offset, length})
	s.open++
	return &faultyBody{s: s, body: body, at: offset, flip: s.flip, short: s.short, readErr: s.readErr, panic: s.panic}, info, nil
}

// asked returns and clears the ranges of blobs that were opened, and checks that all were closed.
func (w *world) asked() [][2]int64 {
	w.tb.Helper()
	s := w.blobs
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != 0 {
		w.tb.Errorf("%d contents are open", s.open)
	}
	opens := s.opens
	s.opens = nil
	return opens
}

// damage sets the faults, even while contents are open.
func (s *faultyBlobs) damage(flip, short int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flip, s.short = flip, short
}

type faultyBody struct {
	s           *faultyBlobs
	body        io.ReadCloser
	at          int64
	flip, short int64
	readErr     error
	panic       any
}

func (b *faultyBody) Read(p []byte) (int, error) {
	if b.panic != nil {
		panic(b.panic)
	}
	if b.short > 0 {
		if b.at >= b.short {
			if b.readErr != nil {
				return 0, b.readErr
			}
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), b.short-b.at)]
	}
	n, err := b.body.Read(p)
	if at := b.flip - 1 - b.at; at >= 0 && at < int64(n) {
		p[at] ^= 1
	}
	b.at += int64(n)
	return n, err
}

func (b *faultyBody) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.s.open--
	return b.body.Close()
}

// blobCount returns the number of blobs without the marker.
func (w *world) blobCount() int {
	w.tb.Helper()
	n := 0
	for info, err := range w.blobs.List(context.Background(), "") {
		if err != nil {
			w.tb.Fatal(err)
		}
		if info.Key != formsvc.MarkerKey {
			n++
		}
	}
	return n
}

// isEmpty checks that uploads to a list left no file, no blob and no event.
func (w *world) isEmpty(list string) {
	w.tb.Helper()
	if n := w.total(list); n != 0 {
		w.tb.Errorf("%d files", n)
	}
	if n := w.blobCount(); n != 0 {
		w.tb.Errorf("%d blobs", n)
	}
	events := w.do("GET", "/v1/events?event=file.uploaded", "").is(200, "")
	if items, _ := events.at("items").([]any); len(items) != 0 {
		w.tb.Errorf("%d events", len(items))
	}
}

// uploads returns the path of the files of a new response.
func (w *world) uploads() string {
	w.tb.Helper()
	return w.response(w.campaign(plainCampaign)) + "/files"
}

// upload stores a file in a new response and returns its path.
func (w *world) upload(content string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return w.do("POST", w.uploads(), content, edits...).is(201, "").header.Get("Location")
}

// noise returns n bytes without a period.
func noise(n int) string {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b)
	return string(b)
}

func without(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}

// named sends the body as a file with that Content-Disposition.
func named(disposition string) func(*http.Request) {
	return header("Content-Disposition", disposition)
}

// asForm sends the body as a multipart form.
func asForm(r *http.Request) {
	r.Header.Del("Content-Disposition")
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
}

const boundary = "a--boundary"

// formOf returns a form of the parts, each with its header.
func formOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

// part returns a part with that name; more are further lines of its header.
func part(name, content string, more ...string) string {
	lines := append([]string{`Content-Disposition: form-data; name="` + name + `"`}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + content
}

// filePart returns a part with a file named a.txt.
func filePart(content string, more ...string) string {
	return strings.Replace(part("file", content, more...), `"file"`, `"file"; filename="a.txt"`, 1)
}

// sha256Digest returns the SHA-256 of a content as an entry of a digest header.
func sha256Digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// checkFile checks the invariants of every reply with a file.
func (a *answer) checkFile(method string) {
	a.tb.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "private, no-cache",
		"Accept-Ranges":                "bytes",
	} {
		if got := a.header.Get(name); got != want {
			a.errorf("%s = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"Content-Type", "Etag", "Repr-Digest", "Last-Modified", "Content-Length"} {
		if a.header.Get(name) == "" {
			a.errorf("no %s", name)
		}
	}
	if method == http.MethodHead && a.body != "" {
		a.errorf("HEAD with a body")
	}
}
