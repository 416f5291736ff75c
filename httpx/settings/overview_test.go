package settings_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// How much of the quota is used: now, and hour by hour.
func TestQuotaOnOverview(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.get("/").is(200).says("0 of 1 000 this hour", "Nothing in the last 24 hours")
		busy := w.submit(w.get("/keys"), "/keys", url.Values{"name": {"busy"}, "permissions": {"campaigns:read"}}).secret()
		idle := w.submit(w.get("/keys"), "/keys", url.Values{"name": {"idle"}, "permissions": {"campaigns:read"}}).secret()
		take := func(n int, key string) {
			for range n {
				w.ask("/v1/me", key)
			}
			if err := w.svc.Quotas.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		take(2, busy)
		w.wait(time.Hour)
		take(5, busy)
		take(3, idle)
		w.get("/").says("5 of 1 000 this hour", "By the key busy").bars("2 requests", "8 requests")
		keys, err := w.svc.Keys.List(t.Context(), w.account.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if k.Name == "busy" {
				w.submit(w.get("/keys"), "/keys/"+string(k.ID)+"/revoke", nil).is(303)
			}
		}
		w.get("/").says("3 of 1 000 this hour", "By the key idle").bars("2 requests", "8 requests")
		w.wait(25 * time.Hour)
		w.signIn()
		w.get("/").says("0 of 1 000 this hour", "Nothing in the last 24 hours")

		svc, err := formsvc.New(w.store, &formsvc.Options{Now: w.clock, Quota: -1})
		if err != nil {
			t.Fatal(err)
		}
		w.svc = svc
		w.serve(nil)
		w.signIn()
		w.get("/").says("There is no quota on this server")
	})
}

// bars checks what the bars of the page's chart say that are not empty.
func (a *answer) bars(want ...string) {
	a.w.t.Helper()
	var got []string
	for n := range a.page.Descendants() {
		if n.Data == "title" && n.Parent.Data == "g" && !strings.Contains(textOf(n), ": 0 requests") {
			_, text, _ := strings.Cut(textOf(n), ": ")
			got = append(got, text)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		a.w.t.Errorf("the chart has %q, want %q", got, want)
	}
}
