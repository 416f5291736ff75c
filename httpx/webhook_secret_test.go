package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

func TestRotate(t *testing.T) {
	w := newWorld(t, nil)
	made := w.do("POST", "/v1/webhooks", hookBody("a")).is(201, "")
	path := made.header.Get("Location")
	a := w.do("POST", path+"/rotate", "").is(200, "").has(`"2026-11-22T08:30:00.123Z"`, "previousSecretExpiresAt").reads(w, path)
	if a.header.Get("Cache-Control") != "no-store" || len(a.object()) != 10 {
		a.errorf("%v %s", a.header, a.body)
	}
	hook := w.kept(path)
	if a.text("secret") == made.text("secret") || hook.Secret != a.text("secret") || hook.Previous != made.text("secret") {
		t.Errorf("from %s to %s, stored %q and %q", made.text("secret"), a.text("secret"), hook.Secret, hook.Previous)
	}
	w.now = w.now.Add(24*time.Hour - time.Millisecond)
	w.do("GET", path, "").has(`"2026-11-22T08:30:00.123Z"`, "previousSecretExpiresAt")
	w.now = w.now.Add(time.Millisecond)
	w.do("GET", path, "").has(`null`, "previousSecretExpiresAt")
	w.do("POST", path+"/rotate", `{"secret":"one of the owner's","gracePeriodSeconds":90}`).is(200, "").
		has(`"one of the owner's"`, "secret").has(`"2026-11-22T08:31:30.123Z"`, "previousSecretExpiresAt")
	if hook := w.kept(path); hook.Secret != "one of the owner's" || hook.Previous != a.text("secret") {
		t.Errorf("stored %q and %q", hook.Secret, hook.Previous)
	}
	w.do("POST", path+"/rotate", `{"secret":null,"gracePeriodSeconds":null}`).is(200, "").
		has(`"2026-11-23T08:30:00.123Z"`, "previousSecretExpiresAt")
	w.do("POST", path+"/rotate", `{"gracePeriodSeconds":0}`).is(200, "").has(`null`, "previousSecretExpiresAt")
}

// The reply to the request that created a secret shows it once. No other reply and no log shows it, and nothing shows
// the values of headers.
func TestSecretsAreNotShownAgain(t *testing.T) {
	w := newWorld(t, nil)
	const first, second, third, token = "canary first secret", "canary second secret", "canary third secret", "canary of a header"
	body := func(members string) string {
		return hookBody("a", `"secret":"`+first+`","headers":{"X-A":"`+token+`"}`+members)
	}
	path := "/v1/webhooks/" + w.do("POST", "/v1/webhooks", body("")).is(201, "").text("uuid")
	generated := w.do("POST", path+"/rotate", "").is(200, "").text("secret")
	w.do("POST", path+"/rotate", `{"secret":"`+second+`"}`).is(200, "")

	w.seen = new(strings.Builder)
	read := w.do("GET", path, "").is(200, "")
	w.do("GET", "/v1/webhooks", "").is(200, "")
	w.do("PUT", path, read.body).is(200, "")
	w.do("PUT", path, body("")).is(200, "")
	w.do("PUT", path, hookBody("a", `"secret":"`+third+`","headers":{"X-A":null}`)).is(200, "")
	w.do("POST", "/v1/webhooks", hookBody("a", `"secret":"`+third+`"`)).is(409, "webhook_exists")
	w.do("POST", "/v1/webhooks", hookBody("a")).is(200, "")
	w.do("POST", "/v1/webhooks", body(`,"x":1`)).is(400, "invalid_body")
	w.do("POST", "/v1/webhooks", body(`,"secret":"canary"`)).is(400, "duplicate_member")
	w.do("POST", "/v1/webhooks", hookBody("b", `"secret":"canary","headers":{"X-A":"canary\u0007"}`)).is(422, "validation_failed")
	w.do("POST", "/v1/webhooks", hookBody("b", `"secret":"canary \u0000","headers":{"X-A":"canary\u0000"}`)).is(400, "invalid_body")
	w.do("POST", "/v1/webhooks", hookBody("b", `"secret":"`+strings.Repeat("canary", 100)+`"`)).is(422, "validation_failed")
	w.do("POST", path+"/rotate", `{"secret":"`+strings.Repeat("canary", 50)+`"}`).is(422, "validation_failed")
	made := w.do("POST", path+"/test", "").is(201, "")
	w.do("GET", made.header.Get("Location"), "").is(200, "")
	w.do("POST", w.campaign(plainCampaign)+"/responses", plainResponse).is(201, "")
	w.fail()
	w.do("GET", path+"/deliveries", "").is(200, "").has(`2`, "total")
	w.do("GET", "/v1/events", "").is(200, "")
	for _, fault := range []func(){
		func() { w.store.err = formsvc.ErrUnavailable }, func() { w.store.err = errors.New("broken") },
		func() { w.store.err = nil; w.store.panic = "broken" },
	} {
		fault()
		w.do("POST", "/v1/webhooks", body(""))
		w.do("PUT", path, body(""))
		w.do("POST", path+"/rotate", `{"secret":"`+first+`"}`)
		w.do("POST", path+"/test", "")
	}
	for _, secret := range []string{"canary", generated} {
		if strings.Contains(w.seen.String(), secret) {
			t.Errorf("%q was shown:\n%s", secret, w.seen)
		}
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("%q was logged:\n%s", secret, w.log)
		}
	}
	if strings.Count(w.log.String(), "broken") < 8 {
		t.Errorf("the log was not there to be searched: %s", w.log)
	}
}

// The client learns why an address was refused.
func TestRefusedURL(t *testing.T) {
	w := newWorld(t, nil)
	path := w.webhook(hookBody("a"))
	w.use(w.store, nil, func(o *formsvc.Options) {
		o.CheckURL = func(_ context.Context, url string) error {
			return errors.New("is inside")
		}
	})
	for _, row := range [][2]string{{"POST", "/v1/webhooks"}, {"PUT", path}} {
		a := w.do(row[0], row[1], hookTo("http://inside.example/x")).is(422, "validation_failed").faults("/url url_refused")
		if got := a.problem().Errors[0].Detail; got != "is inside" {
			a.errorf("detail %q", got)
		}
	}
}

// A short secret is accepted and signs. Every reply to a request with it warns that it is weak; no other reply does.
func TestShortSecrets(t *testing.T) {
	w := newWorld(t, nil)
	weak := func(a *answer, want bool) *answer {
		t.Helper()
		list, _ := a.object()["warnings"].([]any)
		if text := fmt.Sprint(list...); (len(list) == 1 && strings.Contains(text, "weak")) != want || !want && len(list) > 0 {
			a.errorf("warnings are %v", list)
		}
		return a
	}
	once := header("Idempotency-Key", "short")
	made := weak(w.do("POST", "/v1/webhooks", hookBody("short", `"secret":"x"`), once).is(201, "").has(`"x"`, "secret"), true)
	path := "/v1/webhooks/" + made.text("uuid")
	weak(w.do("POST", "/v1/webhooks", hookBody("short", `"secret":"x"`), once).is(201, ""), true)
	weak(w.do("POST", "/v1/webhooks", hookBody("short")).is(200, ""), false)
	weak(w.do("GET", path, "").is(200, ""), false)
	weak(w.do("PUT", path, hookBody("short", `"secret":"fifteen letters"`)).is(200, ""), true)
	weak(w.do("PUT", path, hookBody("short", `"secret":"sixteen letters!"`)).is(200, ""), false)
	weak(w.do("POST", path+"/rotate", `{"secret":"é"}`).is(200, "").has(`"é"`, "secret"), true)
	weak(w.do("POST", path+"/rotate", ``).is(200, ""), false)
}

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
	for value, code := range map[string]string{"1e3": "invalid_integer", "-1": "out_of_range", "2592001": "out_of_range", "2147483648": "invalid_integer"} {
		w.do("POST", path+"/rotate", `{"gracePeriodSeconds":`+value+`}`).faults("/gracePeriodSeconds " + code)
	}
	w.do("POST", path+"/rotate", `{"secret":"`+strings.Repeat("é", 129)+`"}`).is(422, "").faults("/secret out_of_range")
	w.do("POST", path+"/redeliver", `{"since":"2026-11-21"}`).is(400, "invalid_body").faults("/since invalid_timestamp")
	equal(t, w.kept(path).Version, 1, "the webhook was changed: %v")
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
