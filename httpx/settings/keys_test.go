package settings_test

import (
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
	if err != nil {
		w.t.Fatal(err)
	}
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Authorization", "Bearer "+key)
	recorder := httptest.NewRecorder()
	api.ServeHTTP(recorder, r)
	return recorder.Code
}

// I5, I7: a key is made once, and shown once.
func TestKeyIsShownOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		page := w.get("/keys").is(200).says("No key yet")
		fields := url.Values{"name": {"Website"}, "permissions": {"campaigns:read", "responses:write"}, "expires": {"168h"}}
		made := w.submit(page, "/keys", fields).is(200).says("only this once", "Website", "campaigns:read", "/v1/campaigns")
		value := made.secret()
		if status := w.ask("/v1/campaigns", value); status != 200 {
			t.Errorf("the key opens nothing: %d", status)
		}
		if status := w.ask("/v1/webhooks", value); status != 403 {
			t.Errorf("the key may do more than was chosen: %d", status)
		}
		made.says("curl -H 'Authorization: Bearer " + value + "' " + w.server.URL + "/admin/v1/campaigns")
		if made.header.Get("Cache-Control") != "no-store" {
			t.Errorf("header %v", made.header)
		}
		w.submit(page, "/keys", fields).is(409).says("done already").lacks(value)
		list := w.get("/keys").is(200).says("Website", "in force").lacks(value)
		keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
		if err != nil || len(keys) != 1 {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		if left := keys[0].ExpiresAt.Sub(keys[0].CreatedAt); left != 7*24*time.Hour {
			t.Errorf("it lasts %v", left)
		}
		list.says(keys[0].Prefix + "…")

		w.submit(list, "/keys/"+string(keys[0].ID)+"/revoke", nil).is(303).leadsTo("/keys").is(200).says("is revoked", "revoked")
		if status := w.ask("/v1/campaigns", value); status != 401 {
			t.Errorf("the key still opens: %d", status)
		}
		w.get("/keys?note=%3Cb%3E").is(200).lacks("<b>", `class="note"`)
	})
}

// What is wrong with the form is said beside its fields, and nothing has to be typed
// again.
func TestKeyForm(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		page := w.get("/keys")
		a := w.submit(page, "/keys", url.Values{"name": {" "}, "permissions": nil}).is(422).says("must not be empty", "must name at least one permission")
		if form := a.form("/keys"); len(form["permissions"]) != 0 {
			t.Errorf("filled with %v", form)
		}
		a = w.submit(page, "/keys", url.Values{"name": {strings.Repeat("é", 101)}, "permissions": {"files:read"}, "expires": {"720h"}}).is(422)
		if form := a.form("/keys"); form.Get("name") != strings.Repeat("é", 101) || form.Get("permissions") != "files:read" || form.Get("expires") != "720h" {
			t.Errorf("filled with %v", form)
		}
		// The form is a new one, so that sending it counts.
		w.submit(a, "/keys", url.Values{"name": {"shorter"}}).is(200).secret()
		for _, expires := range []string{"x", "-1h", "1"} {
			w.submit(page, "/keys", url.Values{"name": {"a"}, "expires": {expires}}).is(400)
		}
		w.submit(page, "/keys", url.Values{"name": {"a"}, "permissions": {"root"}}).is(422)
	})
}

func TestLastUseIsShown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		value := w.submit(w.get("/keys"), "/keys", url.Values{"name": {"busy"}, "permissions": {"files:read"}}).secret()
		w.get("/keys").says("last used: never, expires: never")
		w.ask("/v1/me", value)
		keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
		if err != nil {
			t.Fatal(err)
		}
		at := w.clock().UTC().Truncate(time.Second)
		if err := w.store.UseKeys(t.Context(), []formsvc.KeyUse{{AccountID: w.account.ID, ID: keys[0].ID, At: at}}); err != nil {
			t.Fatal(err)
		}
		w.get("/keys").says("last used: " + at.Format("2006-01-02 15:04:05 UTC"))
	})
}
