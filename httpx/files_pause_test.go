//go:build long

package httpx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A client that reads what the kernel has buffered counts as active, although the server can send nothing meanwhile.
func TestDownloadMayPauseWhileBuffersDrain(t *testing.T) {
	w := largeFiles(t)
	list := w.uploads()
	upload := w.request("POST", list, "")
	largeBody(upload, "", "")
	file := w.send(upload).is(201, "").header.Get("Location")
	w.grace(100 * time.Millisecond)
	server := httptest.NewServer(w.api)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.mine.key)
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	n, err := io.CopyN(io.Discard, response.Body, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // ten times the grace
	rest, err := io.Copy(io.Discard, response.Body)
	if n += rest; n != formsvc.DefaultMaxFile || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
