package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
)

// The used part of the quota, now and by hour.
func TestQuotaOnOverview(t *testing.T) {
	w := newSignedIn(t)
	w.get("/").is(200).says("0 of 1 000 this hour", "Nothing in the last 24 hours")
	busy := w.submit(w.get("/keys"), "/keys", url.Values{"name": {"busy"}, "permissions": {"campaigns:read"}}).secret()
	idle := w.submit(w.get("/keys"), "/keys", url.Values{"name": {"idle"}, "permissions": {"campaigns:read"}}).secret()
	take := func(n int, key string) {
		for range n {
			w.ask("/v1/me", key)
		}
		w.must(w.svc.Quotas.Flush(t.Context()))
	}
	take(2, busy)
	w.wait(time.Hour)
	take(5, busy)
	take(3, idle)
	w.get("/").says("5 of 1 000 this hour", "Used by the key busy").bars("2", "8")
	keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
	w.must(err)
	for _, k := range keys {
		if k.Name == "busy" {
			w.submit(w.get("/keys"), "/keys/"+string(k.ID)+"/revoke", nil).is(303)
		}
	}
	w.get("/").says("3 of 1 000 this hour", "Used by the key idle").bars("2", "8")
	w.wait(25 * time.Hour)
	w.signIn()
	w.get("/").says("0 of 1 000 this hour", "Nothing in the last 24 hours")

	svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock, Quota: -1})
	w.must(err)
	w.svc = svc
	w.serve(nil)
	w.signIn()
	w.get("/").says("This server has no quota")
}

// With a login of the host application, visitors see their own requests.
func TestQuotaOfUsersOnOverview(t *testing.T) {
	w := newWorld(t, nil)
	w.embed("", "/console", "", "/")
	api := func(user string, n int) {
		t.Helper()
		for range n {
			r, err := http.NewRequestWithContext(t.Context(), "GET", w.server.URL+"/v1/me", nil)
			w.must(err)
			r.AddCookie(&http.Cookie{Name: "user", Value: user})
			response, err := http.DefaultClient.Do(r)
			w.must(err)
			_ = response.Body.Close()
			if got := response.Header.Get("RateLimit-Policy"); response.StatusCode != 200 || got != `"user";q=1000;w=3600` {
				t.Fatalf("status %d, policy %s", response.StatusCode, got)
			}
		}
		w.must(w.svc.Quotas.Flush(t.Context()))
	}
	api("ada", 4)
	api("bob", 7)
	w.get("/").is(200).says("4 of 1 000 this hour", "Used by you.", "Each other user has a quota").bars("4")
	w.cookie("user", "bob")
	w.get("/").says("7 of 1 000 this hour", "Used by you.").bars("7")
	w.cookie("user", "carl")
	w.get("/").says("0 of 1 000 this hour")
}

// bars checks the texts of all bars that aren't empty.
func (a *answer) bars(want ...string) {
	a.w.t.Helper()
	var got []string
	for n := range a.page.Descendants() {
		if n.Data == "title" && n.Parent.Data == "g" && !strings.Contains(textOf(n), ": 0") {
			_, text, _ := strings.Cut(textOf(n), ": ")
			got = append(got, text)
		}
	}
	equal(a.w.t, strings.Join(got, ", "), strings.Join(want, ", "), "the chart has %q")
}

// embed serves pages and an API below a prefix, with a cookie as login. The pages get the API's address; HOST in it
// stands for another server, whose host is returned.
func (w *world) embed(prefix, pagesAt, apiAt, say string) (host string) {
	w.t.Helper()
	api, err := httpx.New(w.svc, &httpx.Options{Authenticate: func(r *http.Request) (*formsvc.Principal, error) {
		who, err := w.visitor(r)
		if err != nil {
			return nil, err
		}
		return &formsvc.Principal{AccountID: who.AccountID, KeyName: who.Name, Permissions: formsvc.AllPermissions()}, nil
	}})
	w.must(err)
	mux := http.NewServeMux()
	mux.Handle(apiAt+"/", http.StripPrefix(apiAt, api))
	if strings.Contains(say, "HOST") {
		other := httptest.NewServer(mux)
		w.t.Cleanup(other.Close)
		host = strings.TrimPrefix(other.URL, "http://")
		say = strings.Replace(say, "HOST", host, 1)
		mux = http.NewServeMux()
	}
	pages, err := console.New(w.svc, api, &console.Options{APIURL: say, Authenticate: w.visitor})
	w.must(err)
	mux.Handle(pagesAt+"/", http.StripPrefix(pagesAt, pages))
	root := http.NewServeMux()
	root.Handle(prefix+"/", http.StripPrefix(prefix, mux))
	w.server = httptest.NewServer(root)
	w.t.Cleanup(w.server.Close)
	w.base = w.server.URL + prefix + pagesAt
	w.client = newClient(w.t)
	w.cookie("user", "ada")
	return host
}

// visitor returns the visitor that a cookie names.
func (w *world) visitor(r *http.Request) (*console.Visitor, error) {
	user, err := r.Cookie("user")
	if err != nil {
		return nil, formsvc.ErrUnauthenticated
	}
	return &console.Visitor{AccountID: w.account.ID, Name: user.Value}, nil
}
