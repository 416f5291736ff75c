package httpx_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A repeated upload is compared by its file, and stored once.
func TestUploadsHappenOnce(t *testing.T) {
	w := newWorld(t, nil)
	list, content := w.uploads(), noise(200_000)
	campaign, _, _ := strings.Cut(list, "/responses/")
	other := w.response(campaign) + "/files"
	form := formOf(part("module", "cv"), filePart(content, "Content-Type: text/plain"))
	const second = "another.boundary"
	anew := func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary="+second) }
	key := once("k")
	first := w.do("POST", list, form, asForm, key).is(201, "").fresh()
	w.blobs.putErr = formsvc.ErrUnavailable // nothing can be stored from here on
	w.do("POST", list, form, asForm, key).repeats(first)
	w.do("POST", list, strings.ReplaceAll(form, boundary, second), asForm, anew, key).repeats(first)
	w.do("POST", list+"?module=cv", content, named("attachment; filename=a.txt"), header("Content-Type", "text/plain"), key).
		repeats(first)

	mismatch := func(path, body string, edits ...func(*http.Request)) {
		t.Helper()
		w.do("POST", path, body, append(edits, key)...).is(422, "idempotency_mismatch").fresh()
	}
	mismatch(list, formOf(part("module", "cv"), filePart(content+"x", "Content-Type: text/plain")), asForm)
	mismatch(list, formOf(part("module", "vc"), filePart(content, "Content-Type: text/plain")), asForm)
	mismatch(list, formOf(part("module", "cv"), filePart(content, "Content-Type: text/html")), asForm)
	mismatch(list, strings.Replace(form, "a.txt", "b.txt", 1), asForm)
	mismatch(other, form, asForm)
	if files, blobs := w.total(list), w.blobCount(); files != 1 || blobs != 1 || w.total(other) != 0 {
		t.Errorf("%d files, %d blobs", files, blobs)
	}
}

// A refused upload changes nothing, so its key can be reused. A retry must be valid too, to be compared.
func TestRefusedUploadsAreNotReplayed(t *testing.T) {
	w := newWorld(t, nil)
	list, key := w.uploads(), once("k")
	refuse := func() {
		t.Helper()
		w.do("POST", list, noise(maxFile+1), key).is(413, "file_too_large").fresh()
		w.do("POST", list, noise(maxFile+1), key, func(r *http.Request) { r.ContentLength = -1 }).is(413, "file_too_large").fresh()
		w.do("POST", list, "x", key, header("Content-Digest", sha256Digest("y"))).is(400, "digest_mismatch").fresh()
		w.do("POST", list, "x", key, without("Content-Disposition")).is(415, "").fresh()
		w.do("POST", list, formOf(part("module", "cv")), asForm, key).is(400, "file_required").fresh()
		w.do("POST", list, strings.TrimSuffix(formOf(filePart("x")), "--\r\n"), asForm, key).is(400, "multipart_incomplete").fresh()
	}
	refuse()
	campaign, _, _ := strings.Cut(list, "/responses/")
	w.do("POST", campaign+"/responses/"+nobody+"/files", "x", key).is(404, "").fresh()
	w.blobs.putErr = formsvc.ErrUnavailable
	w.do("POST", list, "x", key).is(503, "").fresh()
	w.blobs.putErr = nil
	w.isEmpty(list)
	first := w.do("POST", list, "x", key).is(201, "").fresh()
	refuse()
	w.do("POST", list, "x", key, header("Content-Digest", sha256Digest("x"))).repeats(first)
	if n := w.blobCount(); n != 1 {
		t.Errorf("%d blobs", n)
	}
}

// Of two concurrent uploads with one key, the second gets a conflict on the same node. On two nodes one of them is
// kept, with its blob.
func TestConcurrentUploadsWithOneKey(t *testing.T) {
	w := newWorld(t, nil)
	list, key := w.uploads(), once("k")
	theirs := w.response(w.campaign(plainCampaign, as(w.other.key)), as(w.other.key)) + "/files"
	nodes := w.nodes(2)
	var beside []*answer
	w.blobs.stored = func(context.Context) error { // while the first is in progress
		w.blobs.stored = nil
		beside = append(beside, w.do("POST", list, "x", key), w.do("POST", theirs, "x", key, as(w.other.key)))
		w.api = nodes[1]
		beside = append(beside, w.do("POST", list, "x", key))
		w.api = nodes[0]
		return nil
	}
	replay := w.do("POST", list, "x", key)
	if beside[0].is(409, "idempotency_in_flight").header.Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
	beside[1].is(201, "").fresh()
	replay.repeats(beside[2].is(201, "").fresh())
	w.do("POST", list, "x", key).repeats(beside[2])
	if files, blobs := w.total(list), w.blobCount(); files != 1 || blobs != 2 {
		t.Errorf("%d files, and %d blobs of both accounts", files, blobs)
	}

	// The other node used the key for another file.
	w.blobs.stored = func(context.Context) error {
		w.blobs.stored, w.api = nil, nodes[1]
		w.do("POST", list, "y", once("l")).is(201, "").fresh()
		w.api = nodes[0]
		return nil
	}
	w.do("POST", list, "x", once("l")).is(422, "idempotency_mismatch").fresh()
}
