package httpx_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func seedHooks(f *testing.F) {
	seedBodies(f)
	for _, body := range []string{
		hookBody("b"), hookBody("b", `"secret":"sixteen letters!","disabled":true`), hookBody("b", `"headers":{"X-A":"1","x-b":null}`),
		hookBody("b", `"campaignUuid":"`+nobody+`","secret":"","headers":{"":"","Host":"x"}`), hookBody("b", `"uuid":1,"createdAt":null`),
		`{"secret":"sixteen letters!","gracePeriodSeconds":90}`, `{"gracePeriodSeconds":-1}`, `{"gracePeriodSeconds":null,"secret":null}`,
		`{"since":"2026-11-21T08:30:00Z"}`, `{"since":null}`, `{"url":"http://[::1%25x]/","events":["all","response.created"]}`,
	} {
		f.Add([]byte(body))
	}
}

func FuzzWebhookBody(f *testing.F) {
	seedHooks(f)
	w := newWorld(f, openMemory(f), nil)
	path := w.webhook(hookBody("a", `"headers":{"X-A":"1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		before := w.do("GET", path, "").is(200, "")
		made := w.fuzzed(t, "POST", "/v1/webhooks", body)
		if made.status == 201 {
			w.do("DELETE", "/v1/webhooks/"+made.text("uuid"), "").is(204, "")
		}
		after := w.fuzzed(t, "PUT", path, body)
		stored := w.do("GET", path, "").is(200, "")
		if made.status == 201 && (after.status != 200 || !utf8.Valid(body)) {
			t.Fatalf("%q makes a webhook, but replaces none: %s", body, after.body)
		}
		if after.status != 200 && stored.body != before.body {
			t.Fatalf("%q was refused, but changed something", body)
		}
		if after.status == 200 { // sending the reply back changes nothing
			headers := w.kept(path).Headers
			again := w.do("PUT", path, after.body).is(200, "").object()
			for name, v := range after.object() {
				if !reflect.DeepEqual(again[name], v) && name != "updatedAt" {
					t.Fatalf("%s: %v became %v", name, v, again[name])
				}
			}
			if got := w.kept(path).Headers; !reflect.DeepEqual(got, headers) {
				t.Fatalf("%v became %v", headers, got)
			}
		}
	})
}

func FuzzActions(f *testing.F) {
	seedHooks(f)
	w := newWorld(f, openMemory(f), nil)
	path := w.webhook(hookBody("a"))
	f.Fuzz(func(t *testing.T, body []byte) {
		w.tb = t
		before := w.kept(path)
		a := w.fuzzed(t, "POST", path+"/rotate", body)
		after := w.kept(path)
		if (a.status == 200) != (after.Version == before.Version+1) || a.status == 200 && a.text("secret") != after.Secret {
			t.Fatalf("%q: %d, from version %d to %d", body, a.status, before.Version, after.Version)
		}
		a = w.fuzzed(t, "POST", path+"/redeliver", body)
		var sent struct {
			Since *string `json:"since"`
		}
		if a.status == 200 && (json.Unmarshal(body, &sent) != nil || sent.Since == nil) {
			t.Fatalf("%q was taken", body)
		}
		a = w.fuzzed(t, "POST", path+"/test", body)
		if got := strings.Trim(string(body), " \t\r\n{}"); a.status == 201 && got != "" {
			t.Fatalf("%q was taken", body)
		}
	})
}
