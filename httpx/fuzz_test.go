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

// The fuzz targets check that no input gets a 5xx, that every reply is complete, and that accepted input is stored as
// it was sent.

func seedBodies(f *testing.F) {
	for _, row := range malformedBodies() {
		if len(row.body) < 1<<10 {
			f.Add([]byte(row.body))
		}
	}
	for _, body := range []string{
		plainResponse, plainCampaign, fullCampaign, answers(`{"a":{"value":["\u0000"]},"b":{"value":["\ud83d\ude00"]}}`), `{}`,
		`{"status":"validated","user":{"firstName":null},"responses":{"color":null}}`, `{"title":"x","opensAt":"2026-11-21T08:30:00+01:00"}`,
		`{"title":"x","modules":[{"name":"a","maxLength":1e3}],"metadata":{"a":1}}`, `{"uuid":{"a":[1,2,{"b":null}]},"title":"x"}`,
	} {
		f.Add([]byte(body))
	}
}

func FuzzResponseBody(f *testing.F) {
	seedBodies(f)
	w := newWorld(f, openMemory(f), nil)
	list := w.campaign(plainCampaign) + "/responses"
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		a := w.fuzzed(t, "POST", list, body)
		if a.status != 201 {
			return
		}
		if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
			t.Fatalf("taken: %q", body)
		}
		var sent, got map[string]any
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatalf("taken: %q: %v", body, err)
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got["responses"], sent["responses"]) {
			t.Fatalf("sent %q, got %s", body, a.body)
		}
		if again := w.do("GET", list+"/"+a.text("uuid"), ""); again.body != a.body {
			t.Fatalf("answered %s, stored %s", a.body, again.body)
		}
	})
}

func FuzzPatchBody(f *testing.F) {
	seedBodies(f)
	w := newWorld(f, openMemory(f), nil)
	path := w.response(w.campaign(plainCampaign))
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		before := w.do("GET", path, "").is(200, "")
		after := w.fuzzed(t, "PATCH", path, body)
		stored := w.do("GET", path, "").is(200, "")
		if after.status == 200 && stored.body != after.body {
			t.Fatalf("answered %s, stored %s", after.body, stored.body)
		}
		if after.status != 200 && stored.body != before.body {
			t.Fatalf("%q was refused, but changed\n%s into\n%s", body, before.body, stored.body)
		}
	})
}

func FuzzCampaignBody(f *testing.F) {
	seedBodies(f)
	w := newWorld(f, openMemory(f), nil)
	path := w.campaign(plainCampaign)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		before := w.do("GET", path, "").is(200, "")
		made := w.fuzzed(t, "POST", "/v1/campaigns", body)
		after := w.fuzzed(t, "PUT", path, body)
		stored := w.do("GET", path, "").is(200, "")
		if made.status == 201 && after.status != 200 {
			t.Fatalf("%q makes a campaign, but replaces none: %s", body, after.body)
		}
		if after.status != 200 && stored.body != before.body {
			t.Fatalf("%q was refused, but changed something", body)
		}
		if after.status == 200 { // sending the reply back changes nothing
			again := w.do("PUT", path, after.body).is(200, "").object()
			for name, v := range after.object() {
				if !reflect.DeepEqual(again[name], v) {
					t.Fatalf("%s: %v became %v", name, v, again[name])
				}
			}
		}
	})
}

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
	if a.status >= 500 {
		t.Fatalf("%d: %s", a.status, a.body)
	}
	return a
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
	w := newWorld(f, openMemory(f), nil)
	campaign := w.campaign(plainCampaign)
	deliveries := w.webhook(hookBody("a")) + "/deliveries"
	w.response(campaign)
	w.response(campaign)
	f.Fuzz(func(t *testing.T, query string) {
		w.tb = t
		for _, path := range []string{
			"/v1/campaigns", campaign + "/responses", campaign, "/v1/webhooks", deliveries, "/v1/events",
		} {
			r := w.request("GET", path, "")
			r.URL.RawQuery = query
			a := w.send(r)
			if a.status != 200 && a.status != 400 {
				t.Fatalf("%q: %d %s", query, a.status, a.body)
			}
			if a.status != 200 {
				continue
			}
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatalf("%q was taken: %v", query, err)
			}
			for name, list := range values {
				if strings.Join(list, "") == "" || len(list) > 1 && name != "status" && name != "event" {
					t.Fatalf("%q was taken", query)
				}
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	w := newWorld(f, openMemory(f), nil)
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
		if a.status != 200 && a.status != 400 {
			t.Fatalf("%q: %d %s", cursor, a.status, a.body)
		}
		// To forge one, the fuzzer would have to compute a SHA-256.
		if a.status == 200 && cursor != good && (len(cursor) != len(good) || cursor[23:] != good[23:]) {
			t.Fatalf("%q was taken", cursor)
		}
	})
}

func FuzzPath(f *testing.F) {
	w := newWorld(f, openMemory(f), nil)
	campaign := w.campaign(plainCampaign)
	response := w.response(campaign)
	known := map[string]bool{"": true} // same as "/"
	for _, r := range w.requests(campaign, response) {
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
	w := newWorld(f, openMemory(f), nil)
	path := w.response(w.campaign(plainCampaign))
	f.Fuzz(func(t *testing.T, list string) {
		w.tb = t
		got := w.do("GET", path, "", header("If-None-Match", list))
		if got.status != 200 && got.status != 304 {
			t.Fatalf("%q: %d", list, got.status)
		}
		patched := w.do("PATCH", path, `{}`, header("If-Match", list))
		if patched.status != 200 && patched.status != 400 && patched.status != 412 {
			t.Fatalf("%q: %d", list, patched.status)
		}
		if patched.status == 200 && got.status != 304 {
			t.Fatalf("%q matches strongly, but not weakly", list)
		}
	})
}
