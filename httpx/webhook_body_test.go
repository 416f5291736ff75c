package httpx_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestMalformedBodiesOfWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.webhook(hookBody("a"))
		w.refuses(t, "POST", "/v1/webhooks", "/v1/webhooks", malformed(true))
		w.refuses(t, "PUT", path, "/v1/webhooks", malformed(true))
	})
}

func TestInvalidFieldsOfWebhooks(t *testing.T) {
	long := strings.Repeat("x", 3_000)
	var eleven strings.Builder
	for i := range 11 {
		fmt.Fprintf(&eleven, `,"X-%d":"v"`, i)
	}
	rows := []bad{
		{"nothing", `{}`, 422, "validation_failed", f("/url required", "/events required")},
		{"nulls", `{"url":null,"events":null}`, 400, "invalid_body", f("/url invalid_type", "/events invalid_type")},
		{"wrong types", `{"url":1,"events":"all","secret":[],"campaignUuid":{},"headers":[],"disabled":"no"}`, 400, "invalid_body",
			f("/url invalid_type", "/events invalid_type", "/secret invalid_type", "/campaignUuid invalid_type", "/headers invalid_type",
				"/disabled invalid_type")},
		{"wrong types inside", `{"url":"https://example.com","events":[1,"response.created",null],"headers":{"X-A":1,"X-B":null,"X/C":["x"]}}`,
			400, "invalid_body", f("/events/0 invalid_type", "/events/2 invalid_type", "/headers/X-A invalid_type", "/headers/X~1C invalid_type",
				"/headers invalid_header", "/headers/X-B required")},
		{"other names", hookBody("b", `"URL":"x","event":"x","campaign":"x","version":1,"accountId":"x","previousSecret":"x"`), 400, "invalid_body",
			f("/URL unknown_member", "/event unknown_member", "/campaign unknown_member", "/version unknown_member",
				"/accountId unknown_member", "/previousSecret unknown_member")},
		{"no name for all", `{"url":"https://example.com","events":["all"]}`, 422, "validation_failed", f("/events/0 unknown_event")},
		{"all at once", `{"url":"ftp://example.com","events":["response.created","response.removed"],"secret":"","headers":{"Host":"x","X-A":"é"}}`,
			422, "validation_failed", f("/secret out_of_range", "/url invalid_url", "/events/1 unknown_event", "/headers/Host reserved_header",
				"/headers/X-A invalid_header")},
		{"no events", `{"url":"https://example.com","events":[]}`, 422, "validation_failed", f("/events required")},
		{"many events", `{"url":"https://example.com","events":` + nested(`"response.created"`, 5_000) + `}`, 422, "validation_failed", f("/events too_many")},
		{"a user in the URL", hookTo("https://user:password@example.com/"), 422, "validation_failed", f("/url invalid_url")},
		{"no host", hookTo("https:///x"), 422, "validation_failed", f("/url invalid_url")},
		{"relative", hookTo("/x"), 422, "validation_failed", f("/url invalid_url")},
		{"empty URL", hookTo(""), 422, "validation_failed", f("/url required")},
		{"long URL", hookBody(long), 422, "validation_failed", f("/url too_long")},
		{"long secret", hookBody("b", `"secret":"`+long+`"`), 422, "validation_failed", f("/secret out_of_range", "/secret too_long")},
		{"campaign by its title", hookBody("b", `"campaignUuid":"Survey"`), 400, "invalid_body", f("/campaignUuid invalid_uuid")},
		{"empty campaign", hookBody("b", `"campaignUuid":""`), 400, "invalid_body", f("/campaignUuid invalid_uuid")},
		{"unknown campaign in upper case", hookBody("b", `"campaignUuid":"018F0000-0000-7000-8000-00000000000A"`), 422, "validation_failed",
			f("/campaignUuid unknown_campaign")},
		{"eleven headers", hookBody("b", `"headers":{`+eleven.String()[1:]+`}`), 422, "validation_failed", f("/headers too_many")},
		{"many headers", hookBody("b", `"headers":`+strings.ReplaceAll(manyAnswers(5_000), `{"value":[]}`, `""`)), 422, "validation_failed",
			f("/headers too_many")},
		{"bad names of headers", hookBody("b", `"headers":{"":"x","X A":"x","X-É":"x"}`), 422, "validation_failed",
			f("/headers invalid_header", "/headers invalid_header", "/headers invalid_header")},
		{"long name of a header", hookBody("b", `"headers":{"`+long+`":"x"}`), 400, "invalid_body", f("/headers too_long")},
		{"injected header", hookBody("b", `"headers":{"X-A":"1\r\nX-B: 2"}`), 422, "validation_failed", f("/headers/X-A invalid_header")},
		{"empty header", hookBody("b", `"headers":{"X-A":""}`), 422, "validation_failed", f("/headers/X-A invalid_header")},
		{"twice the same header", hookBody("b", `"headers":{"X-A":"1","X-A":"2"}`), 400, "duplicate_member", f("/headers/X-A duplicate_member")},
		{"twice, in another case", hookBody("b", `"headers":{"X-A":"1","x-a":"2"}`), 422, "validation_failed", f("/headers/x-a duplicate")},
		{"no value to keep", hookBody("b", `"headers":{"X-A":null}`), 422, "validation_failed", f("/headers/X-A required")},
		{"NUL", `{"url":"https://a\u0000","events":["\u0000"],"secret":"\u0000","campaignUuid":"\u0000","headers":{"a\u0000":"x","X-B":"\u0000"}}`,
			400, "invalid_body", f("/url nul_not_allowed", "/events/0 nul_not_allowed", "/secret nul_not_allowed", "/campaignUuid nul_not_allowed",
				"/headers nul_not_allowed", "/headers/X-B nul_not_allowed")},
	}
	everywhere(t, func(t *testing.T, w *world) {
		path := w.webhook(hookBody("a"))
		w.refuses(t, "POST", "/v1/webhooks", "/v1/webhooks", rows)
		w.refuses(t, "PUT", path, "/v1/webhooks", rows)
		w.refuses(t, "POST", "/v1/webhooks", "/v1/webhooks", []bad{
			{"members of the answer", hookBody("b", `"uuid":"x","createdAt":"x","updatedAt":1,"previousSecretExpiresAt":null`), 400, "invalid_body",
				f("/uuid unknown_member", "/createdAt unknown_member", "/updatedAt unknown_member", "/previousSecretExpiresAt unknown_member")},
		})
		w.do("PUT", path, hookBody("b", `"uuid":"x","createdAt":{},"updatedAt":1,"previousSecretExpiresAt":[]`)).is(200, "")
	})
}

// Bodies of actions on a webhook or a delivery.
func TestWebhookActionBodies(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.webhook(hookBody("a"))
		made := w.do("POST", path+"/test", "").is(201, "").header.Get("Location")
		count := path + "/deliveries"
		none := func(name, body string, status int, code string, faults ...string) bad {
			return bad{name, body, status, code, faults}
		}
		for _, action := range []string{path + "/test", made + "/redeliver"} {
			w.refuses(t, "POST", action, count, []bad{
				none("members", `{"event":"response.created","since":null}`, 400, "invalid_body", "/event unknown_member", "/since unknown_member"),
				none("white space", " ", 400, "empty_body"), none("array", "[]", 400, "not_an_object"), none("null", "null", 400, "not_an_object"),
				none("cut short", "{", 400, "malformed_json"), none("two", "{}{}", 400, "trailing_data"),
			})
		}
		before := w.kept(path)
		w.refuses(t, "POST", path+"/rotate", count, append(malformed(false),
			none("wrong types", `{"secret":1,"gracePeriodSeconds":"1","grace":1}`, 400, "invalid_body",
				"/secret invalid_type", "/gracePeriodSeconds invalid_type", "/grace unknown_member"),
			none("fraction", `{"gracePeriodSeconds":1.5}`, 400, "invalid_body", "/gracePeriodSeconds invalid_integer"),
			none("exponent", `{"gracePeriodSeconds":1e3}`, 400, "invalid_body", "/gracePeriodSeconds invalid_integer"),
			none("out of range", `{"secret":"`+strings.Repeat("é", 129)+`","gracePeriodSeconds":-1}`, 422, "validation_failed",
				"/secret out_of_range", "/gracePeriodSeconds out_of_range"),
			none("over a month", `{"secret":"","gracePeriodSeconds":2592001}`, 422, "validation_failed",
				"/secret out_of_range", "/gracePeriodSeconds out_of_range"),
			none("as much as fits", `{"gracePeriodSeconds":2147483647}`, 422, "validation_failed", "/gracePeriodSeconds out_of_range"),
			none("more than fits", `{"gracePeriodSeconds":2147483648}`, 400, "invalid_body", "/gracePeriodSeconds invalid_integer"),
		))
		if after := w.kept(path); after.Version != before.Version || after.Secret != before.Secret {
			t.Error("the webhook was changed")
		}
		w.refuses(t, "POST", path+"/redeliver", count, append(malformed(true),
			none("nothing", `{}`, 422, "validation_failed", "/since required"),
			none("null", `{"since":null}`, 400, "invalid_body", "/since invalid_type"),
			none("number", `{"since":1763713800}`, 400, "invalid_body", "/since invalid_type"),
			none("date", `{"since":"2026-11-21"}`, 400, "invalid_body", "/since invalid_timestamp"),
			none("duration", `{"since":"2h"}`, 400, "invalid_body", "/since invalid_timestamp"),
			none("more", `{"since":"2026-11-21T08:30:00Z","until":"2026-11-21T08:30:00Z"}`, 400, "invalid_body", "/until unknown_member"),
		))
	})
}

// malformed returns malformed bodies of responses for other routes, without the faults listed.
func malformed(absent bool) []bad {
	var rows []bad
	for _, row := range malformedBodies() {
		row.faults = nil
		if row.body != "" || absent {
			rows = append(rows, row)
		}
	}
	return rows
}

// A body that may be absent needs a media type only if it is there.
func TestAbsentBodies(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.webhook(hookBody("a"))
		made := w.do("POST", path+"/test", "").is(201, "").header.Get("Location")
		noType := func(r *http.Request) { r.Header.Del("Content-Type") }
		unknownLength := func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, -1 }
		for action, status := range map[string]int{path + "/test": 201, path + "/rotate": 200, made + "/redeliver": 200} {
			w.do("POST", action, "", noType).is(status, "")
			w.do("POST", action, "").is(status, "")
			w.do("POST", action, "{}").is(status, "")
			w.do("POST", action, "", unknownLength).is(status, "")
			w.do("POST", action, "{}", noType).is(415, "unsupported_media_type")
			w.do("POST", action, "{}", header("Content-Type", "text/plain")).is(415, "unsupported_media_type")
			w.do("POST", action, "{}", header("Content-Encoding", "gzip")).is(415, "unsupported_content_encoding")
			w.do("POST", action, `{"x":"`+strings.Repeat("x", 4<<20)+`"}`).is(413, "body_too_large")
		}
		w.do("POST", path+"/redeliver", "", noType).is(415, "unsupported_media_type")
		w.do("POST", "/v1/webhooks", hookBody("b"), header("Content-Type", "text/plain")).is(415, "unsupported_media_type")
		w.do("PUT", path, hookBody("b")+strings.Repeat(" ", 4<<20)).is(413, "body_too_large")
	})
}
