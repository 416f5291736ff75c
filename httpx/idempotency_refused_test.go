package httpx_test

import (
	"net/http"
	"strings"
	"testing"

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
	w.serve(&httpx.Options{MaxBody: 1000})
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
	a := w.do("POST", path, "", once("again")).is(409, "delivery_in_progress").fresh()
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
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
		if err != nil || len(record.Body) == 0 || strings.Contains(string(record.Body), secret) {
			t.Errorf("%s: %s, %v", key, record.Body, err)
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
	keys, err := w.svc.Keys.List(t.Context(), w.mine.account.ID)
	if err != nil {
		t.Fatal(err)
	}
	page, err := w.svc.Audits.List(t.Context(), formsvc.AuditQuery{
		AccountID: w.mine.account.ID, Target: formsvc.ID(hook.text("uuid")), Page: formsvc.PageQuery{Ascending: true},
	})
	var got []string
	for _, e := range page.Items {
		got = append(got, e.Actor+" "+string(e.Action))
	}
	who := "key " + string(keys[0].ID) + " webhook."
	want := []string{who + "created", who + "tested", who + "secret_rotated", who + "redelivered", who + "updated", who + "deleted"}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
}

// Erasing a person's data deletes the stored replies that contain it.
func TestErasureDeletesStoredReplies(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	response := w.response(campaign, once("response"))
	posts := []struct{ key, path, body string }{
		{"response", campaign + "/responses", plainResponse}, {"file", response + "/files", "{}"},
		{"comment", response + "/comments", plainComment}, {"signature", response + "/signatures", plainSignature},
	}
	for _, p := range posts {
		w.do("POST", p.path, p.body, once(p.key)).is(201, "")
	}
	if _, err := w.svc.Erasure.Person(t.Context(), w.mine.account.ID, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	for _, p := range posts {
		w.do("POST", p.path, p.body, once(p.key)).is(410, "erased")
	}
	w.do("POST", campaign+"/responses", answers(`{}`), once("response")).is(422, "idempotency_mismatch")
}
