package httpx_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Webhooks over the API are an extension: in the specification they are in the console only. The tests check the
// specification's rules about them too (50 an account, which events exist).

func TestWebhookMembers(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	a := w.do("POST", "/v1/webhooks", hookBody("a")).is(201, "")
	random, ok := strings.CutPrefix(a.text("secret"), "whsec_")
	if b, err := base64.StdEncoding.DecodeString(random); !ok || err != nil || len(b) < 32 {
		a.errorf("secret %s: %v", a.text("secret"), err)
	}
	a.reads(w, a.header.Get("Location"))

	id := strings.TrimPrefix(campaign, "/v1/campaigns/")
	b := w.do("POST", "/v1/webhooks", `{"url":"http://[2001:db8::1]:8080/a?b=c","events":["file.uploaded","response.created","file.uploaded"],`+
		`"secret":"sixteen letters!","campaignUuid":"`+id+`","disabled":true,"headers":{"x-token":"t","Authorization":"Bearer b"}}`).is(201, "").
		has(`"http://[2001:db8::1]:8080/a?b=c"`, "url").has(`["response.created","file.uploaded"]`, "events").
		has(`"`+id+`"`, "campaignUuid").has(`true`, "disabled").has(`{"X-Token":null,"Authorization":null}`, "headers").
		has(`"sixteen letters!"`, "secret")
	b.reads(w, b.header.Get("Location"))
	nulls := w.do("POST", "/v1/webhooks", hookBody("nulls", `"secret":null,"campaignUuid":null,"disabled":null,"headers":null`)).is(201, "").
		has(`null`, "campaignUuid").has(`false`, "disabled").has(`{}`, "headers")
	w.do("PUT", nulls.header.Get("Location"), hookBody("nulls", `"secret":null`)).is(200, "")
	equal(t, w.kept(nulls.header.Get("Location")).Secret, nulls.text("secret"), "null for a secret changed it: %v")
	path := b.header.Get("Location")
	want := []formsvc.Header{{Name: "Authorization", Value: "Bearer b"}, {Name: "X-Token", Value: "t"}}
	if hook := w.kept(path); hook.Secret != "sixteen letters!" || !slices.Equal(hook.Headers, want) {
		t.Errorf("stored %q and %+v", hook.Secret, hook.Headers)
	}
	// PUT replaces the whole webhook, but never shows the secret.
	w.now = w.now.Add(time.Second)
	put := w.do("PUT", path, `{"url":"http://[2001:db8::1]:8080/b","events":["file.uploaded"],"secret":"a secret of one's own"}`).is(200, "").
		has(`["file.uploaded"]`, "events").has(`null`, "campaignUuid").has(`false`, "disabled").has(`{}`, "headers").
		has(`"2026-11-21T08:30:00.123Z"`, "createdAt").has(`"2026-11-21T08:30:01.123Z"`, "updatedAt").reads(w, path)
	if len(put.object()) != 9 || w.kept(path).Secret != "a secret of one's own" {
		put.errorf("shows the secret or did not change it: %s", put.body)
	}
}

// A webhook can be changed and sent back as it was read; values that aren't shown are kept.
func TestReadModifyWriteOfWebhooks(t *testing.T) {
	w := newWorld(t, nil)
	id := strings.TrimPrefix(w.campaign(plainCampaign), "/v1/campaigns/")
	path := w.webhook(hookBody("a", `"campaignUuid":"`+id+`","disabled":true,"headers":{"X-A":"1","X-B":"2"}`))
	w.do("POST", path+"/rotate", "").is(200, "")
	before := w.kept(path)
	read := w.do("GET", path, "").is(200, "")
	edited := strings.Replace(read.body, `"disabled":true`, `"disabled":false`, 1)
	a := w.do("PUT", path, edited, header("If-Match", read.header.Get("Etag"))).is(200, "").has(`false`, "disabled")
	want := read.object()
	want["disabled"] = false
	if !reflect.DeepEqual(a.object(), want) {
		t.Errorf("%v became %s", want, a.body)
	}
	after := w.kept(path)
	if after.Secret != before.Secret || after.Previous != before.Previous || !after.PreviousUntil.Equal(before.PreviousUntil) ||
		!slices.Equal(after.Headers, before.Headers) {
		t.Errorf("%+v\nbecame %+v", before, after)
	}
	edited = strings.Replace(a.body, `"X-B":null`, `"x-b":null,"X-C":"3"`, 1)
	edited = strings.Replace(edited, `"X-A":null,`, "", 1)
	w.do("PUT", path, edited).is(200, "").has(`{"X-B":null,"X-C":null}`, "headers")
	if got := w.kept(path).Headers; !slices.Equal(got, []formsvc.Header{{Name: "X-B", Value: "2"}, {Name: "X-C", Value: "3"}}) {
		t.Errorf("headers %+v", got)
	}
	w.do("PUT", path, hookBody("a", `"headers":{"X-B":null,"X-D/e":null}`)).is(422, "validation_failed").faults("/headers invalid_header")
	w.do("PUT", path, hookBody("a", `"headers":{"X-D":null}`)).is(422, "validation_failed").faults("/headers/X-D required")
	w.do("PUT", path, hookBody("a", `"secret":"of the owner's own"`)).is(200, "").has(`null`, "previousSecretExpiresAt")
}

// Creating the same webhook again returns the existing one, unless the request has a secret or headers.
func TestCreateExistingWebhookReturnsIt(t *testing.T) {
	w := newWorld(t, nil)
	first := w.do("POST", "/v1/webhooks", hookBody("a", `"secret":"known to the one who asks"`, `"headers":{"X-A":"1","X-B":"2"}`)).is(201, "")
	a := w.do("POST", "/v1/webhooks", hookBody("a")).is(200, "")
	if a.header.Get("Location") != first.header.Get("Location") || a.header.Get("Etag") != first.header.Get("Etag") {
		a.errorf("%v, want the headers of %v", a.header, first.header)
	}
	if len(a.object()) != 9 || a.text("uuid") != first.text("uuid") {
		a.errorf("%s, want %s without the secret", a.body, first.body)
	}
	a.reads(w, a.header.Get("Location"))
	a = w.do("POST", "/v1/webhooks", hookBody("a", `"secret":"known to the one who asks"`)).is(409, "webhook_exists")
	if !strings.Contains(a.problem().Detail, first.text("uuid")) {
		a.errorf("does not say which: %s", a.body)
	}
}

// The specification: at most 50 webhooks an account.
func TestWebhookLimit(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 50 {
		w.webhook(hookBody(fmt.Sprint(i)))
	}
	if a := w.do("POST", "/v1/webhooks", hookBody("one-more")).is(409, "webhook_limit"); !strings.Contains(a.problem().Detail, "50") {
		a.errorf("does not name the limit: %s", a.body)
	}
	w.do("POST", "/v1/webhooks", hookBody("7")).is(200, "")
}

func TestDeleteWebhook(t *testing.T) {
	w := newWorld(t, nil)
	path := w.webhook(hookBody("a"))
	made := w.do("POST", path+"/test", "").is(201, "").header.Get("Location")
	w.do("DELETE", path, "", as(w.other.key)).is(404, "not_found")
	w.do("DELETE", path, "", header("If-Match", `"1-0"`)).is(400, "invalid_header")
	w.do("DELETE", path, "", header("If-None-Match", `*`)).is(400, "invalid_header")
	w.do("DELETE", path+"?x=1", "").is(400, "invalid_parameter")
	w.do("GET", made, "").is(200, "")
	w.do("DELETE", path, "").is(204, "")
	for _, gone := range []string{path, made} {
		w.do("GET", gone, "").is(404, "not_found")
	}
	w.do("DELETE", path, "").is(404, "not_found")
}

func TestWebhookConditions(t *testing.T) {
	w := newWorld(t, nil)
	made := w.do("POST", "/v1/webhooks", hookBody("a")).is(201, "")
	path := made.header.Get("Location")
	tag := func(a *answer, status int, want string) {
		t.Helper()
		if got := a.is(status, "").header.Get("Etag"); got != want {
			a.errorf("ETag %s, want %s", got, want)
		}
	}
	tag(made, 201, `"1-0"`)
	tag(w.do("GET", path, ""), 200, `"1-0"`)
	tag(w.do("HEAD", path, "", header("If-None-Match", `"1-0"`)), 304, `"1-0"`)
	tag(w.do("POST", "/v1/webhooks", hookBody("a")), 200, `"1-0"`)
	put := func(match string) *answer { return w.do("PUT", path, hookBody("a"), header("If-Match", match)) }
	put(`"2-0"`).is(412, "precondition_failed")
	tag(put(`"1-0"`), 200, `"2-0"`)
	put(`"1-0"`).is(412, "precondition_failed")
	put(`"1-0", "2-0"`).is(200, "")
	tag(w.do("POST", path+"/rotate", `{"gracePeriodSeconds":60}`), 200, `"4-1"`)
	w.do("GET", path, "", header("If-None-Match", `"4-1"`)).is(304, "")
	w.now = w.now.Add(time.Minute) // the old secret ends, which changes the webhook's representation
	tag(w.do("GET", path, "", header("If-None-Match", `"4-1"`)), 200, `"4-0"`)
	put(`"4-1"`).is(200, "") // and isn't a change by another client
	w.do("POST", path+"/rotate", `{}`, header("If-Match", `"5-0"`)).is(400, "invalid_header")
}

// A webhook that sends mail shows no secret, which would confirm its address, and is the same after it is read and sent back.
func TestMailWebhooks(t *testing.T) {
	w := newWorld(t, nil)
	create := func() *answer {
		return w.do("POST", "/v1/webhooks", `{"url":"mailto:ada@example.com","events":["response.created"],"mail":{"daily":true,"replyTo":true}}`, header("Idempotency-Key", "k"))
	}
	a := create().is(201, "").has(`{"daily":true,"replyTo":true,"confirmedAt":null}`, "mail").has(`true`, "disabled")
	for _, body := range []string{a.body, create().is(201, "").body} {
		if strings.Contains(body, "secret\"") || strings.Contains(body, "whsec") {
			t.Errorf("the secret is shown: %s", body)
		}
	}
	path := a.header.Get("Location")
	w.do("PUT", path, strings.Replace(a.body, `"disabled":true`, `"disabled":false`, 1)).is(200, "").has(`true`, "disabled").has(`{"daily":true,"replyTo":true,"confirmedAt":null}`, "mail")
	w.do("POST", path+"/rotate", "").is(422, "validation_failed").faults("/url not_allowed")
	for body, fault := range map[string]string{
		`{"url":"mailto:ada","events":["response.created"]}`:                                           "/url invalid_url",
		`{"url":"mailto:ada@example.com?bcc=eve@example.com","events":["response.created"]}`:           "/url invalid_url",
		`{"url":"mailto:ada@example.com","events":["response.created"],"secret":"0123456789abcdef"}`:   "/secret not_allowed",
		`{"url":"mailto:ada@example.com","events":["response.created"],"headers":{"X-A":"1"}}`:         "/headers not_allowed",
		`{"url":"https://receiver.example.com/a","events":["response.created"],"mail":{"daily":true}}`: "/mail not_allowed",
	} {
		w.do("POST", "/v1/webhooks", body).is(422, "validation_failed").faults(fault)
	}
}
