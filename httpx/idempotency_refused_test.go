package httpx_test

import (
	"net/http"
	"strings"
	"testing"

	"context"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// A refusal is replayed like a success, even if the request would succeed by now.
func TestRefusalsAreReplayed(t *testing.T) {
	w := newWorld(t, nil)
	closed := w.campaign(`{"title":"Closed","status":"closed"}`)
	w.webhook(hookBody("taken"))
	list := closed + "/responses"
	for _, row := range []struct {
		path, body string
		status     int
		code       string
	}{
		{list, plainResponse, 409, "campaign_closed"},
		{list, `{"responses":{}}`, 422, "validation_failed"},
		{list, `{"user":`, 400, "malformed_json"},
		{"/v1/campaigns/" + nobody + "/responses", plainResponse, 404, "not_found"},
		{"/v1/webhooks/" + nobody + "/test", ``, 404, "not_found"},
		{"/v1/webhooks", hookBody("taken", `"secret":"another-secret-of-it"`), 409, "webhook_exists"},
	} {
		key := once("refused-" + row.code + row.path)
		first := w.do("POST", row.path, row.body, key).is(row.status, row.code).fresh()
		w.do("POST", row.path, row.body, key).repeats(first)
		w.do("POST", row.path, row.body+" ", key).is(422, "idempotency_mismatch")
	}
	w.do("PUT", closed, plainCampaign).is(200, "")
	w.do("POST", list, plainResponse, once("refused-campaign_closed"+list)).is(409, "campaign_closed")
	w.do("POST", list, plainResponse, once("new")).is(201, "")
}

// Refusals that don't depend on the request itself aren't stored: for a principal, for an incomplete body, or while a
// delivery is in progress.
func TestTransientRefusalsAreNotReplayed(t *testing.T) {
	w := newWorld(t, nil)
	w.bare.SetLimits(func(l *httpx.Limits) { l.Body = 1000 })
	list, key := w.campaign(plainCampaign)+"/responses", once("k")
	w.do("POST", list, plainResponse, key, as("nobody")).is(401, "")
	w.do("POST", list, plainResponse, key, as(w.key(w.mine, formsvc.ResponsesRead))).is(403, "")
	w.do("POST", list, plainResponse, key, header("Content-Type", "text/plain")).is(415, "")
	w.do("POST", list+"?a=b", plainResponse, key).is(400, "")
	w.do("POST", list, strings.Repeat(" ", 1001), key, func(r *http.Request) { r.ContentLength = -1 }).is(413, "")
	w.do("POST", list, plainResponse, key, func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 10) }).is(413, "")
	first := w.do("POST", list, plainResponse, key).is(201, "").fresh()

	// A replay needs the same permission as the call.
	w.do("POST", list, plainResponse, key, as(w.key(w.mine, formsvc.ResponsesRead))).is(403, "").fresh()
	w.do("POST", list, plainResponse, key, as(w.key(w.mine, formsvc.ResponsesWrite))).repeats(first)

	hook := w.webhook(hookBody("in"))
	d := w.do("POST", hook+"/test", "").is(201, "")
	w.claim()
	path := "/v1/deliveries/" + d.text("uuid") + "/redeliver"
	w.do("POST", path, "", once("again")).is(409, "delivery_in_progress").fresh().wantHeader("Retry-After", "1")
	w.now = w.now.Add(formsvc.IdempotencyTTL / 2) // the claim has expired by then
	w.do("POST", path, "", once("again")).is(200, "").fresh()
}

// D10: the first reply has the secret, and replays don't.
func TestReplaysHaveNoSecret(t *testing.T) {
	w := newWorld(t, nil)
	made := w.do("POST", "/v1/webhooks", hookBody("in"), once("made")).is(201, "")
	path := "/v1/webhooks/" + made.text("uuid") + "/rotate"
	rotated := w.do("POST", path, "", once("rotated")).is(200, "")
	w.do("POST", "/v1/webhooks", hookBody("in"), once("made")).repeats(made)
	w.do("POST", path, "", once("rotated")).repeats(rotated)
	given := w.do("POST", "/v1/webhooks", hookBody("own", `"secret":"a-secret-of-my-own"`), once("given")).is(201, "")
	for key, first := range map[string]*answer{"made": made, "rotated": rotated, "given": given} {
		secret := first.text("secret")
		record, err := w.store.Recall(t.Context(), w.mine.account.ID, key, w.now)
		if err != nil || len(record.Result) == 0 || strings.Contains(string(record.Result), secret) {
			t.Errorf("%s: %s, %v", key, record.Result, err)
		}
	}
}

// The audit trail names the key once for each change of a webhook.
func TestWebhooksAreAudited(t *testing.T) {
	w := newWorld(t, nil)
	hook := w.do("POST", "/v1/webhooks", hookBody("in"), once("made")).is(201, "")
	w.do("POST", "/v1/webhooks", hookBody("in"), once("made")).repeats(hook)
	path := "/v1/webhooks/" + hook.text("uuid")
	w.do("POST", path+"/test", "").is(201, "")
	w.do("POST", path+"/rotate", "").is(200, "")
	w.do("POST", path+"/redeliver", `{"since":"2026-11-21T08:30:00Z"}`).is(200, "")
	w.do("PUT", path, hookBody("out")).is(200, "")
	w.do("DELETE", path, "").is(204, "")
	keys := must(w.svc.Keys.List(t.Context(), w.mine.account.ID))
	page, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{
		AccountID: w.mine.account.ID, Target: formsvc.ID(hook.text("uuid")), Page: formsvc.PageQuery{Ascending: true},
	})
	got := ""
	for _, e := range page.Items {
		got += strings.TrimPrefix(e.Actor+" "+string(e.Action)+" ", "key "+string(keys[0].ID)+" webhook.")
	}
	if want := "created tested secret_rotated redelivered updated deleted "; err != nil || got != want {
		t.Errorf("%v, got %q, want %q", err, got, want)
	}
}

// Erasing a person's data deletes the stored replies that contain it.
func TestErasureDeletesStoredReplies(t *testing.T) {
	w := newWorld(t, nil)
	response := w.response(w.campaign(plainCampaign), once("response"))
	posts := [][2]string{
		{response[:strings.LastIndexByte(response, '/')], plainResponse}, {response + "/files", "{}"}, {response + "/comments", plainComment},
	}
	for _, p := range posts[1:] {
		w.do("POST", p[0], p[1], once(p[0])).is(201, "")
	}
	must(w.svc.Accounts.ErasePerson(t.Context(), w.mine.account.ID, "ada@example.com"))
	for i, p := range posts {
		w.do("POST", p[0], p[1], once([]string{"response", p[0], p[0]}[i])).is(410, "erased")
	}
	w.do("POST", posts[0][0], answers(`{}`), once("response")).is(422, "idempotency_mismatch")
}

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
	equal(t, w.blobCount(), 1, "%d blobs")
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
	beside[0].is(409, "idempotency_in_flight").wantHeader("Retry-After", "1")
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
