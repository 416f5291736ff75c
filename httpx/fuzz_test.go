package httpx_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// The fuzz targets check that no input gets a 5xx, that every reply is as documented, and that a refused request changes nothing.

// fuzzed sends any bytes as a body.
func (w *world) fuzzed(t *testing.T, method, path string, body []byte) *answer {
	t.Helper()
	a := w.do(method, path, "", func(r *http.Request) {
		r.Body, r.ContentLength = http.NoBody, 0
		if len(body) > 0 {
			sent := httptest.NewRequest(method, path, bytes.NewReader(body))
			r.Body, r.ContentLength = sent.Body, sent.ContentLength
		}
	})
	if a.status >= 500 || a.status < 400 && !utf8.Valid(body) {
		t.Fatalf("%s %s: %q: %d: %s", method, path, body, a.status, a.body)
	}
	return a
}

// FuzzBody sends a body to every kind of operation that takes one.
func FuzzBody(f *testing.F) {
	for _, row := range malformedBodies() {
		if len(row.body) < 1<<10 {
			f.Add([]byte(row.body))
		}
	}
	for _, body := range []string{
		plainResponse, plainCampaign, fullCampaign, answers(`{"a":{"value":["\u0000"]},"b":{"value":["\ud83d\ude00"]}}`), `{}`,
		`{"status":"validated","user":{"firstName":null},"responses":{"color":null}}`, `{"title":"x","opensAt":"2026-11-21T08:30:00+01:00"}`,
		`{"title":"x","modules":[{"name":"a","maxLength":1e3}],"metadata":{"a":1}}`, `{"uuid":{"a":[1,2,{"b":null}]},"title":"x"}`,
		hookBody("b"), hookBody("b", `"secret":"sixteen letters!","disabled":true`), hookBody("b", `"headers":{"X-A":"1","x-b":null}`),
		hookBody("b", `"campaignUuid":"`+nobody+`","secret":"","headers":{"":"","Host":"x"}`), hookBody("b", `"uuid":1,"createdAt":null`),
		`{"secret":"sixteen letters!","gracePeriodSeconds":90}`, `{"gracePeriodSeconds":-1}`, `{"gracePeriodSeconds":null,"secret":null}`,
		`{"since":"2026-11-21T08:30:00Z"}`, `{"since":null}`, `{"url":"http://[::1%25x]/","events":["all","response.created"]}`,
		plainComment, plainSignature,
	} {
		f.Add([]byte(body))
	}
	w := newWorld(f, nil)
	campaign, response := w.pair()
	hook := w.webhook(hookBody("a", `"headers":{"X-A":"1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		for _, list := range []string{campaign + "/responses", "/v1/campaigns", "/v1/webhooks", response + "/comments", response + "/signatures"} {
			before := w.total(list)
			a := w.fuzzed(t, "POST", list, body)
			if made := w.total(list) - before; (made == 1) != (a.status == 201) {
				t.Fatalf("%s: %q: %d makes %d", list, body, a.status, made)
			}
			if list == "/v1/webhooks" && a.status == 201 {
				w.do("DELETE", list+"/"+a.text("uuid"), "").is(204, "")
			}
			if list != campaign+"/responses" || a.status != 201 {
				continue
			}
			var sent, got map[string]any
			if json.Unmarshal(body, &sent) != nil || json.Unmarshal([]byte(a.body), &got) != nil || !reflect.DeepEqual(got["responses"], sent["responses"]) {
				t.Fatalf("sent %q, got %s", body, a.body)
			}
		}
		for path, method := range map[string]string{response: "PATCH", campaign: "PUT", hook: "PUT"} {
			before := w.do("GET", path, "").is(200, "")
			a := w.fuzzed(t, method, path, body)
			stored := w.do("GET", path, "").is(200, "")
			if a.status == 200 && stored.body != a.body || a.status != 200 && stored.body != before.body {
				t.Fatalf("%s: %q: %d %s, stored %s, before %s", path, body, a.status, a.body, stored.body, before.body)
			}
			if a.status == 200 { // sending the reply back changes nothing
				w.do(method, path, a.body).is(200, "").same(stored, "updatedAt")
			}
		}
		before := w.kept(hook)
		a := w.fuzzed(t, "POST", hook+"/rotate", body)
		if after := w.kept(hook); (a.status == 200) != (after.Version == before.Version+1) || a.status == 200 && a.text("secret") != after.Secret {
			t.Fatalf("%q: %d, from version %d to %d", body, a.status, before.Version, after.Version)
		}
		w.fuzzed(t, "POST", hook+"/redeliver", body)
		if a = w.fuzzed(t, "POST", hook+"/test", body); a.status == 201 && strings.Trim(string(body), " \t\r\n{}") != "" {
			t.Fatalf("%q was taken", body)
		}
	})
}

// same checks that the reply has the same members as another one, apart from some.
func (a *answer) same(other *answer, except ...string) {
	a.tb.Helper()
	got, want := a.object(), other.object()
	for _, name := range except {
		delete(got, name)
		delete(want, name)
	}
	if !reflect.DeepEqual(got, want) {
		a.errorf("%v, want %v", got, want)
	}
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "limit=1", "limit=1&offset=2", "order=asc&cursor=x", "status=a&status=b", "createdAfter=2026-11-21T08:30:00Z", "email=a%40b",
		"limit=1;2", "%zz", "a=%00", "limit=99999999999999999999", "&&=&", "cursor=AQGh_ToDu3V7mwyG_j72i_kAAAAAAAAAAA",
		"state=failed", "event=response.created&event=file.uploaded", "event=x",
		"updatedAfter=2026-11-21T08:30:00+01:00", "reference=%ff", "limit=%31", "createdBefore=9999-12-31T23:59:59.9999999Z",
	} {
		f.Add(query)
	}
	w := newWorld(f, nil)
	campaign := w.campaign(plainCampaign)
	deliveries := w.webhook(hookBody("a")) + "/deliveries"
	w.response(campaign)
	w.response(campaign)
	f.Fuzz(func(t *testing.T, query string) {
		w.tb = t
		for _, path := range []string{"/v1/campaigns", campaign + "/responses", campaign, "/v1/webhooks", deliveries, "/v1/events"} {
			r := w.request("GET", path, "")
			r.URL.RawQuery = query
			a := w.send(r)
			if a.status != 200 && a.status != 400 {
				t.Fatalf("%q: %d %s", query, a.status, a.body)
			}
			if _, err := url.ParseQuery(query); a.status == 200 && err != nil {
				t.Fatalf("%q was taken: %v", query, err)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	w := newWorld(f, nil)
	list := w.campaign(plainCampaign) + "/responses"
	for range 3 {
		w.do("POST", list, plainResponse).is(201, "")
	}
	_, good := w.page(list + "?limit=1")
	for _, cursor := range []string{good, good[1:], good + "A", strings.ToUpper(good), "x", "AAAA", good[:10] + "\n" + good[11:]} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		w.tb = t
		a := w.do("GET", list+"?cursor="+url.QueryEscape(cursor), "")
		if a.status != 200 && a.status != 400 || a.status == 200 && cursor != "" && len(cursor) != len(good) {
			t.Fatalf("%q: %d %s", cursor, a.status, a.body)
		}
	})
}

func FuzzPath(f *testing.F) {
	w := newWorld(f, nil)
	known := map[string]bool{"": true} // same as "/"
	for _, r := range w.requests(w.pair()) {
		known[r.path] = true
		f.Add(r.path)
	}
	for _, path := range []string{"//", "/v1/./campaigns", "/v1/%63ampaigns", "/v1/campaigns/%00", "/v1/campaigns/", "*", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.Parse("http://example.com/" + path)
		if err != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(path, "?#") {
			return
		}
		w.tb = t
		r := w.request("GET", "/", "")
		r.URL = u
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(u.Path, "/"), strings.TrimPrefix(u.RawPath, "/")
		if a := w.send(r); a.status != 404 && !known[path] {
			t.Fatalf("%q: %d", path, a.status)
		}
	})
}

func FuzzETags(f *testing.F) {
	for _, list := range []string{`"1"`, `W/"1"`, `*`, `"1", "2"`, `"a b"`, `,,`, `"`, `W/`, `"1-1"`, `"1"x`} {
		f.Add(list)
	}
	w := newWorld(f, nil)
	path := w.response(w.campaign(plainCampaign))
	f.Fuzz(func(t *testing.T, list string) {
		w.tb = t
		got := w.do("GET", path, "", header("If-None-Match", list))
		if got.status != 200 && got.status != 304 {
			t.Fatalf("%q: %d", list, got.status)
		}
		patched := w.do("PATCH", path, `{}`, header("If-Match", list))
		if patched.status != 200 && patched.status != 400 && patched.status != 412 || patched.status == 200 && got.status != 304 {
			t.Fatalf("%q: %d", list, patched.status)
		}
	})
}
