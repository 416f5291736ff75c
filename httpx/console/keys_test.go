package console_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// ask calls the API with a key.
func (w *world) ask(path, key string) int {
	w.t.Helper()
	api, err := httpx.New(w.svc, nil)
	w.must(err)
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Authorization", "Bearer "+key)
	recorder := httptest.NewRecorder()
	api.ServeHTTP(recorder, r)
	return recorder.Code
}

// I5, I7: a form creates one key, and shows it once.
func TestKeyIsShownOnce(t *testing.T) {
	w := newSignedIn(t)
	page := w.get("/keys").is(200).says("No keys yet")
	fields := url.Values{"name": {"Website"}, "permissions": {"campaigns:read", "responses:write"}, "expires": {"168h"}}
	made := w.submit(page, "/keys", fields).is(200).says("won't be shown again", "Website", "campaigns:read", "/v1/campaigns")
	value := made.secret()
	equal(t, w.ask("/v1/campaigns", value), 200, "the key opens nothing: %d")
	equal(t, w.ask("/v1/webhooks", value), 403, "the key may do more than was chosen: %d")
	made.says("curl -H 'Authorization: Bearer " + value + "' " + w.server.URL + "/forms/v1/campaigns")
	equal(t, made.header.Get("Cache-Control"), "no-store", "Cache-Control %q")
	w.submit(page, "/keys", fields).is(409).says("Already done").lacks(value)
	list := w.get("/keys").is(200).says("Website", "active").lacks(value)
	keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	equal(t, keys[0].ExpiresAt.Sub(keys[0].CreatedAt), 7*24*time.Hour, "it lasts %v")
	at := w.clock().UTC().Truncate(time.Second)
	w.must(w.store.UseKeys(t.Context(), []formsvc.KeyUse{{AccountID: w.account.ID, ID: keys[0].ID, At: at}}))
	list.says(keys[0].Prefix+"…", "last used: never")
	w.get("/keys").says("last used: " + at.Format("2006-01-02 15:04:05 UTC"))

	w.submit(list, "/keys/"+string(keys[0].ID)+"/revoke", nil).is(303).leadsTo("/keys").is(200).says("Key revoked", "revoked")
	equal(t, w.ask("/v1/campaigns", value), 401, "the key still opens: %d")
	w.get("/keys?note=%3Cb%3E").is(200).lacks("<b>", `class="note"`)
}

// Errors of the form are shown beside its fields, which keep their values.
func TestKeyForm(t *testing.T) {
	w := newSignedIn(t)
	page := w.get("/keys")
	a := w.submit(page, "/keys", url.Values{"name": {" "}, "permissions": nil}).is(422).says("must not be empty", "must name at least one permission")
	if form := a.form("/keys"); len(form["permissions"]) != 0 {
		t.Errorf("filled with %v", form)
	}
	a = w.submit(page, "/keys", url.Values{"name": {strings.Repeat("é", 101)}, "permissions": {"files:read"}, "expires": {"720h"}}).is(422)
	if form := a.form("/keys"); form.Get("name") != strings.Repeat("é", 101) || form.Get("permissions") != "files:read" || form.Get("expires") != "720h" {
		t.Errorf("filled with %v", form)
	}
	// The form is a new one, so sending it takes effect.
	w.submit(a, "/keys", url.Values{"name": {"shorter"}}).is(200).secret()
	for _, expires := range []string{"x", "-1h", "1"} {
		w.submit(page, "/keys", url.Values{"name": {"a"}, "expires": {expires}}).is(400)
	}
	w.submit(page, "/keys", url.Values{"name": {"a"}, "permissions": {"root"}}).is(422)
}

// An account may have many keys, of which a page shows 25. Revoked ones stay in their position.
func TestManyKeys(t *testing.T) {
	w := newSignedIn(t)
	var keys []formsvc.Key
	for i := range 30 {
		k, err := w.svc.Keys.Create(t.Context(), w.account.ID, formsvc.KeyInput{Name: fmt.Sprint("k-", i, "."), Permissions: formsvc.AllPermissions()})
		w.must(err)
		keys = append(keys, k.Key)
	}
	w.must(w.svc.Keys.Revoke(t.Context(), w.account.ID, keys[10].ID))
	w.get("/keys").is(200).says("k-29.", "k-10.", "k-5.").lacks("k-4.")
	second := w.get("/keys?after="+string(keys[5].ID)).says("k-4.", "k-0.", "Newest").lacks("k-5.")
	w.submit(second, "/keys/"+string(keys[2].ID)+"/revoke", nil).is(303)
	w.get("/keys?after=" + string(keys[0].ID)).is(200).says("No older keys").lacks("No keys yet")
	w.get("/keys?after=x").is(200).says("k-29.")
}
