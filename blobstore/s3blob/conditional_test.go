package s3blob_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/s3blob"
)

// The error of a server that refuses conditions says what is missing.
func TestServerWithoutConditionalWrites(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotImplemented)
		_, _ = w.Write([]byte("<Error><Code>NotImplemented</Code><Message>A header you provided …</Message></Error>"))
	}))
	defer server.Close()
	store, err := s3blob.New(s3blob.Bucket{Name: "bucket", Endpoint: server.URL}, s3blob.StaticCredentials("key", "secret", ""), nil)
	noError(t, err)
	_, err = store.Put(t.Context(), "k", strings.NewReader("x"))
	if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, blobstore.ErrUnavailable) || !strings.Contains(err.Error(), "conditional writes") {
		t.Errorf("got %v", err)
	}
}
