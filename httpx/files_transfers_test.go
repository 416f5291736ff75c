package httpx_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/httpx"
)

// Transfers beyond the limit are refused and leave nothing behind; others succeed.
func TestMaxTransfers(t *testing.T) {
	w := newWorld(t, nil)
	w.serve(&httpx.Options{MaxTransfers: 1})
	location := w.upload("first")
	list := w.uploads()
	during := 0
	w.blobs.stored = func(context.Context) error {
		w.blobs.stored = nil
		during++
		turned := w.do("POST", list, formOf(filePart("third")), asForm).is(503, "too_many_transfers")
		if turned.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		w.do("GET", location, "").is(503, "too_many_transfers")
		w.do("GET", list, "").is(200, "")
		return nil
	}
	w.do("POST", list, formOf(filePart("second")), asForm).is(201, "")
	if got := w.do("GET", location, "").is(200, "").body; got != "first" || during != 1 {
		t.Errorf("afterwards %q; %d uploads were watched", got, during)
	}
	if n := w.total(list); n != 1 || w.blobCount() != 2 {
		t.Errorf("%d files, %d blobs", n, w.blobCount())
	}
	// Failed transfers free their slot too.
	for range 3 {
		w.do("POST", list, "x", asForm).is(400, "multipart_incomplete")
	}
	w.upload("last")
}

// An upload holds a slot for requests while it looks up its response, which may have megabytes.
func TestUploadLooksUpItsResponseInASlot(t *testing.T) {
	w := newWorld(t, &httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	list, looked := w.uploads(), false
	w.store.hold.Store(new(func() {
		looked = true
		w.do("GET", strings.TrimSuffix(list, "/files"), "").is(503, "unavailable")
	}))
	w.do("POST", list, "x").is(201, "")
	if !looked {
		t.Error("no response was looked up")
	}
}
