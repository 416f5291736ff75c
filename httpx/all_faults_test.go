package httpx_test

import (
	"strings"
	"testing"
)

// One reply lists all errors of a body, whether of its shape or of a rule. An error that only follows from another one
// isn't listed. 400 wins over 422.
func TestOneReplyListsAllErrors(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		plain := w.campaign(plainCampaign)
		strict := w.campaign(`{"title":"x","modules":[{"name":"a","required":true},{"name":"n","type":"number","multiple":true},{"name":"b","required":true}]}`)
		response := w.response(plain)
		hook := "/v1/webhooks/" + w.do("POST", "/v1/webhooks", hookBody("all")).is(201, "").text("uuid")
		before := w.do("GET", "/v1/webhooks", "").body + w.do("GET", "/v1/campaigns", "").body + w.do("GET", response, "").body
		for _, row := range []struct {
			what, method, path, body string
			status                   int
			faults                   []string
		}{
			{"shape and rules", "POST", plain + "/responses", `{"user":{"email":"ada"},"responses":{"a":{"value":1}}}`, 400,
				f("/responses/a/value invalid_type", "/user/email invalid_email")},
			{"shape and rules of modules", "POST", strict + "/responses", `{"user":{"email":5,"x":1},"responses":{"a":[],"n":{"value":[1,"two","3"]},"c":{"value":[]}}}`, 400,
				f("/user/email invalid_type", "/user/x unknown_member", "/responses/a invalid_type", "/responses/n/value/0 invalid_type",
					"/responses/n/value/1 invalid_number", "/responses/c unknown_module", "/responses/b required")},
			{"wrong types of objects", "POST", strict + "/responses", `{"user":[],"responses":null}`, 400, f("/user invalid_type", "/responses invalid_type")},
			{"missing fields and rules", "POST", strict + "/responses", `{"responses":{"a":{},"b":{"value":["x"]},"n":{"value":["x"]}}}`, 422,
				f("/responses/a/value required", "/user required", "/responses/n/value/0 invalid_number")},
			{"unknown campaign", "POST", "/v1/campaigns/" + nobody + "/responses", `{"user":{"email":"ada"},"responses":{"a":{"value":1}}}`, 400,
				f("/responses/a/value invalid_type")},
			{"a patch", "PATCH", response, `{"status":"","user":{"email":null,"lastName":1},"responses":{"a":{"value":[1]}}}`, 400,
				f("/user/lastName invalid_type", "/responses/a/value/0 invalid_type", "/status invalid_value", "/user/email required")},
			{"a campaign", "POST", "/v1/campaigns",
				`{"title":" ","status":1,"modules":[{"name":"a","type":true,"options":["x"]},5,{"name":"a","maxLength":-1}],"opensAt":"soon"}`, 400,
				f("/status invalid_type", "/modules/0/type invalid_type", "/modules/1 invalid_type", "/opensAt invalid_timestamp", "/title required",
					"/modules/2/name duplicate", "/modules/2/maxLength out_of_range")},
			{"another campaign", "PUT", plain, `{"title":"","description":1}`, 400, f("/description invalid_type", "/title required")},
			{"a comment", "POST", response + "/comments", `{"body":" ","author":"x"}`, 400, f("/author unknown_member", "/body required")},
			{"a signature", "POST", response + "/signatures", `{"signer":{"email":"x"},"fileUuid":"y","provider":"` + strings.Repeat("p", 201) + `"}`, 400,
				f("/fileUuid invalid_uuid", "/signer/email invalid_email", "/provider too_long")},
			{"a webhook", "POST", "/v1/webhooks", `{"url":"ftp://x","events":[7,"nope"],"headers":{"Host":"x","X-A":null},"secret":""}`, 400,
				f("/events/0 invalid_type", "/secret out_of_range", "/url invalid_url", "/events/1 unknown_event", "/headers/Host reserved_header", "/headers/X-A required")},
			{"another webhook", "PUT", hook, `{"url":"","events":["nope"],"headers":{"X-A":null},"disabled":1}`, 400,
				f("/disabled invalid_type", "/url required", "/events/0 unknown_event", "/headers/X-A required")},
			{"rules of a webhook", "PUT", hook, `{"url":"","events":["nope"],"headers":{"X-A":null}}`, 422,
				f("/url required", "/events/0 unknown_event", "/headers/X-A required")},
			{"query and body", "POST", plain + "/responses?dry=1", `{"user":{"email":"ada"},"responses":{"a":{"value":1}}}`, 400,
				f("dry unknown_parameter", "/responses/a/value invalid_type", "/user/email invalid_email")},
			{"query and rules", "PUT", hook + "?x=1&y", `{"url":"","events":["nope"]}`, 400,
				f("x unknown_parameter", "y unknown_parameter", "/url required", "/events/0 unknown_event")},
			{"a rotation", "POST", hook + "/rotate", `{"secret":1,"gracePeriodSeconds":-1}`, 400, f("/secret invalid_type", "/gracePeriodSeconds out_of_range")},
		} {
			code := "validation_failed"
			switch {
			case strings.Contains(row.path, "?"):
				code = "invalid_parameter"
			case row.status == 400:
				code = "invalid_body"
			}
			a := w.do(row.method, row.path, row.body)
			a.what += " " + row.what
			a.is(row.status, code).faults(row.faults...)
		}
		w.do("POST", plain+"/responses?dry=1", `{"user":1,"user":2}`).is(400, "invalid_parameter").faults("dry unknown_parameter", "/user duplicate_member")
		w.do("POST", plain+"/responses?dry=1", `{`).is(400, "invalid_parameter").faults("dry unknown_parameter", " malformed_json")
		w.do("POST", plain+"/responses?dry=1", plainResponse).is(400, "invalid_parameter").faults("dry unknown_parameter")
		after := w.do("GET", "/v1/webhooks", "").body + w.do("GET", "/v1/campaigns", "").body + w.do("GET", response, "").body
		if after != before {
			t.Errorf("something was changed: %s, was %s", after, before)
		}
		w.do("GET", "/v1/events?order=desc&cursor=x&limit=0&state=x", "").is(400, "invalid_parameter").
			faults("limit invalid_value", "state unknown_parameter", "cursor not_applicable")
	})
}
