package httpx_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestInvalidFieldsOfWebhooks(t *testing.T) {
	var eleven strings.Builder
	for i := range 11 {
		fmt.Fprintf(&eleven, `,"X-%d":"v"`, i)
	}
	rows := []bad{
		{"no name for all", `{"url":"https://example.com","events":["all"]}`, 422, "validation_failed", f("/events/0 unknown_event")},
		{"all at once", `{"url":"ftp://example.com","events":["response.created","response.removed"],"secret":"","headers":{"Host":"x","X-A":"é"}}`,
			422, "validation_failed", f("/secret out_of_range", "/url invalid_url", "/events/1 unknown_event", "/headers/Host reserved_header",
				"/headers/X-A invalid_header")},
		{"no events", `{"url":"https://example.com","events":[]}`, 422, "validation_failed", f("/events required")},
		{"campaign by its title", hookBody("b", `"campaignUuid":"Survey"`), 400, "invalid_body", f("/campaignUuid invalid_uuid")},
		{"eleven headers", hookBody("b", `"headers":{`+eleven.String()[1:]+`}`), 422, "validation_failed", f("/headers too_many")},
		{"bad names of headers", hookBody("b", `"headers":{"":"x","X A":"x","X-É":"x"}`), 422, "validation_failed",
			f("/headers invalid_header", "/headers invalid_header", "/headers invalid_header")},
		{"injected header", hookBody("b", `"headers":{"X-A":"1\r\nX-B: 2"}`), 422, "validation_failed", f("/headers/X-A invalid_header")},
		{"twice the same header", hookBody("b", `"headers":{"X-A":"1","X-A":"2"}`), 400, "duplicate_member", f("/headers/X-A duplicate_member")},
		{"twice, in another case", hookBody("b", `"headers":{"X-A":"1","x-a":"2"}`), 422, "validation_failed", f("/headers/x-a duplicate")},
		{"no value to keep", hookBody("b", `"headers":{"X-A":null}`), 422, "validation_failed", f("/headers/X-A required")},
		{"NUL", hookBody("b", `"secret":"\u0000"`), 400, "invalid_body", f("/secret nul_not_allowed")},
	}
	w := newWorld(t, nil)
	path := w.webhook(hookBody("a"))
	w.refuses(t, "POST", "/v1/webhooks", "/v1/webhooks", rows)
	w.refuses(t, "PUT", path, "/v1/webhooks", rows)
	w.do("PUT", path, hookBody("b", `"uuid":"x","createdAt":{},"updatedAt":1,"previousSecretExpiresAt":[]`)).is(200, "")
}

func TestInvalidRotations(t *testing.T) {
	w := newWorld(t, nil)
	path := w.webhook(hookBody("a"))
	before := w.kept(path)
	for body, status := range map[string]int{
		`{"gracePeriodSeconds":1e3}`: 400, `{"gracePeriodSeconds":-1}`: 422, `{"gracePeriodSeconds":2592001}`: 422, `{"gracePeriodSeconds":2147483648}`: 400,
	} {
		code := map[int]string{400: "invalid_integer", 422: "out_of_range"}[status]
		w.do("POST", path+"/rotate", body).is(status, "").faults("/gracePeriodSeconds " + code)
	}
	w.do("POST", path+"/rotate", `{"secret":"`+strings.Repeat("é", 129)+`"}`).is(422, "").faults("/secret out_of_range")
	if after := w.kept(path); after.Version != before.Version || after.Secret != before.Secret {
		t.Error("the webhook was changed")
	}
	for _, since := range []string{"2026-11-21", "2h", "1763713800"} {
		w.do("POST", path+"/redeliver", `{"since":"`+since+`"}`).is(400, "invalid_body").faults("/since invalid_timestamp")
	}
}

// A body that may be absent needs a media type only if it is there.
func TestAbsentBodies(t *testing.T) {
	w := newWorld(t, nil)
	path := w.webhook(hookBody("a"))
	made := w.do("POST", path+"/test", "").is(201, "").header.Get("Location")
	unknownLength := func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, -1 }
	for action, status := range map[string]int{path + "/test": 201, path + "/rotate": 200, made + "/redeliver": 200} {
		w.do("POST", action, "", without("Content-Type")).is(status, "")
		w.do("POST", action, "").is(status, "")
		w.do("POST", action, "{}").is(status, "")
		w.do("POST", action, "", unknownLength).is(status, "")
		w.do("POST", action, "{}", without("Content-Type")).is(415, "unsupported_media_type")
	}
	w.do("POST", path+"/redeliver", "", without("Content-Type")).is(415, "unsupported_media_type")
}
