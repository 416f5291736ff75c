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

// FuzzRequest sends any path, query and entity tags.
func FuzzRequest(f *testing.F) {
	w := newWorld(f, nil)
	campaign, response := w.pair()
	w.response(campaign)
	known := map[string]bool{"": true} // same as "/"
	for _, r := range w.requests(campaign, response) {
		known[r.path] = true
		f.Add(r.path, "limit=1&offset=2", `"1"`)
	}
	for _, path := range []string{"//", "/v1/./campaigns", "/v1/%63ampaigns", "/v1/campaigns/%00", "*"} {
		f.Add(path, "", "*")
	}
	_, cursor := w.page(campaign + "/responses?limit=1")
	for _, query := range []string{
		"cursor=" + cursor, "cursor=" + cursor[1:], "cursor=" + strings.ToUpper(cursor), "order=asc&cursor=x", "status=a&status=b", "email=a%40b", "limit=1;2", "%zz",
		"a=%00", "limit=99999999999999999999", "&&=&", "event=response.created&event=x", "updatedAfter=2026-11-21T08:30:00+01:00", "reference=%ff",
	} {
		f.Add(campaign+"/responses", query, `W/"1", "2"`)
	}
	for _, tags := range []string{`"a b"`, `,,`, `"`, `W/`, `"1-1"`, `"1"x`} {
		f.Add(response, "", tags)
	}
	f.Fuzz(func(t *testing.T, path, query, tags string) {
		w.tb = t
		if u, err := url.Parse("http://example.com/" + path); err == nil && u.RawQuery == "" && u.Fragment == "" && !strings.ContainsAny(path, "?#") {
			r := w.request("GET", "/", "", header("If-None-Match", tags))
			r.URL = u
			r.URL.Path, r.URL.RawPath, r.URL.RawQuery = strings.TrimPrefix(u.Path, "/"), strings.TrimPrefix(u.RawPath, "/"), query
			a := w.send(r)
			if a.status != 404 && !known[path] || a.status >= 500 {
				t.Fatalf("%q?%q: %d", path, query, a.status)
			}
			if _, err := url.ParseQuery(query); a.status == 200 && err != nil {
				t.Fatalf("%q was taken: %v", query, err)
			}
		}
		got, patched := w.do("GET", response, "", header("If-None-Match", tags)), w.do("PATCH", response, `{}`, header("If-Match", tags))
		if patched.status != 200 && patched.status != 400 && patched.status != 412 || patched.status == 200 && got.status != 304 {
			t.Fatalf("%q: %d, %d", tags, got.status, patched.status)
		}
	})
}
