package httpx_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// D1, D2, D4: invalid keys.
func TestInvalidKeysGet401(t *testing.T) {
	w := newWorld(t, nil)
	key := w.mine.key
	revoked := w.key(w.mine, formsvc.CampaignsRead)
	keys := must(w.svc.Keys.List(t.Context(), w.mine.account.ID))
	noError(t, w.svc.Keys.Revoke(t.Context(), w.mine.account.ID, keys[len(keys)-1].ID))
	expired := must(w.svc.Keys.Create(t.Context(), w.mine.account.ID, formsvc.KeyInput{
		Name: "short", Permissions: formsvc.AllPermissions(), Expires: time.Minute,
	}))
	w.now = w.now.Add(time.Hour)
	flipped := []byte(key)
	flipped[20] ^= 1
	body := ""
	for _, values := range [][]string{
		nil, {""}, {"Bearer"}, {"Bearer "}, {key}, {"Basic " + key}, {"Bearer" + key}, {"Bearer\t" + key}, {"Bearer  " + key + " "},
		{"Bearer " + key + " "}, {" Bearer " + key}, {"Bearer " + key + "x"}, {"Bearer " + key[:len(key)-1]}, {"Bearer " + strings.ToUpper(key)},
		{"Bearer " + string(flipped)}, {"Bearer x" + key[1:]}, {"Bearer " + strings.Repeat("x", 64<<10)}, {"Bearer \xff\x00é"},
		{"Bearer " + key, "Bearer " + key}, {"Bearer " + key + ", Bearer " + key}, {"Token " + key}, {"Bearer " + revoked}, {"Bearer " + expired.Value},
	} {
		a := w.do("GET", "/v1/campaigns", "", header("Authorization", values...), header("X-Request-Id", "x")).is(401, "unauthenticated")
		if a.wantHeader("WWW-Authenticate", "Bearer"); body != "" && body != a.body {
			t.Errorf("%.60q: %s, elsewhere %s", values, a.body, body)
		}
		body = a.body
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER", "bEaReR", "Bearer ", "Bearer   "} {
		w.do("GET", "/v1/campaigns", "", header("Authorization", scheme+" "+key)).is(200, "")
	}
	w.do("GET", "/v1/campaigns?key="+key, "", func(r *http.Request) {
		r.Header.Del("Authorization")
		r.AddCookie(&http.Cookie{Name: "key", Value: key})
	}).is(401, "unauthenticated")
	calls := w.store.calls.Load()
	w.do("GET", "/v1/campaigns", "", header("Authorization", "Bearer "+string(flipped))).is(401, "")
	equal(t, w.store.calls.Load(), calls, "a key with a bad checksum was looked up: %v")
}

// The order of checks: path, method, key, permission, media type, query, body.
func TestOrderOfChecks(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	reader := w.key(w.mine, formsvc.ResponsesRead)
	noKey := func(r *http.Request) { r.Header.Del("Authorization") }
	text := header("Content-Type", "text/plain")
	w.do("DELETE", list+"/x?y=1", "{", noKey, text).is(404, "")
	w.do("DELETE", list+"?y=1", "{", noKey, text).is(405, "")
	w.do("POST", list+"?y=1", "{", noKey, text).is(401, "")
	w.do("POST", list+"?y=1", "{", as(reader), text).is(403, "")
	w.do("POST", list+"?y=1", "{", text).is(415, "")
	w.do("POST", list+"?y=1", "{").is(400, "invalid_parameter")
	w.do("POST", list, "{").is(400, "malformed_json")
	nowhere := "/v1/campaigns/" + nobody + "/responses"
	w.do("POST", nowhere, `{"user":1}`).is(400, "invalid_body")
	w.do("POST", nowhere, plainResponse).is(404, "not_found")
	w.do("GET", nowhere, "").is(404, "not_found")
}

func TestHostAuthentication(t *testing.T) {
	w := newWorld(t, nil)
	var who *formsvc.Principal
	var failure error
	w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) { return who, failure }})
	noKey := func(r *http.Request) { r.Header.Del("Authorization") }
	w.do("GET", "/v1/campaigns", "", noKey).is(401, "unauthenticated")
	who = &formsvc.Principal{AccountID: w.mine.account.ID, Permissions: []formsvc.Permission{formsvc.CampaignsRead}}
	w.do("GET", "/v1/campaigns", "").is(200, "")
	w.do("POST", "/v1/campaigns", plainCampaign).is(403, "permission_denied")
	w.do("GET", "/v1/me", "", as(w.other.key)).is(200, "").has("null", "key").has(`["campaigns:read"]`, "permissions").has(`"mine"`, "account", "name")
	who.Permissions = nil
	w.do("GET", "/v1/campaigns", "").is(403, "permission_denied")
	who.AccountID = nobody
	w.do("GET", "/v1/me", "").is(401, "unauthenticated")
	failure = fmt.Errorf("session: %w", formsvc.ErrUnauthenticated)
	w.do("GET", "/v1/campaigns", "", noKey).is(401, "unauthenticated")
	w.do("GET", "/v1/me", "").is(200, "").has(`"mine key"`, "key", "name") // keys work beside the login
	w.do("GET", "/v1/me", "", as("formsvc_no")).is(401, "unauthenticated")
	failure = errors.New("the session store is away")
	w.do("GET", "/v1/campaigns", "").is(500, "internal")
}
