package httpx_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// Webhooks over the API are an extension: in the specification they are in account settings only. The tests check the
// specification's rules about them too (50 an account, which events exist).

func TestWebhookMembers(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		a := w.do("POST", "/v1/webhooks", hookBody("a")).is(201, "").
			has(`"https://example.com/a"`, "url").has(`["response.created"]`, "events").has(`null`, "campaignUuid").
			has(`false`, "disabled").has(`{}`, "headers").has(`null`, "previousSecretExpiresAt").
			has(`"2026-11-21T08:30:00.123Z"`, "createdAt").has(`"2026-11-21T08:30:00.123Z"`, "updatedAt")
		if len(a.object()) != 10 {
			a.errorf("%d members, want 10: %s", len(a.object()), a.body)
		}
		random, ok := strings.CutPrefix(a.text("secret"), "whsec_")
		if b, err := base64.StdEncoding.DecodeString(random); !ok || err != nil || len(b) < 32 {
			a.errorf("secret %s: %v", a.text("secret"), err)
		}
		if a.header.Get("Location") != "/v1/webhooks/"+a.text("uuid") || a.header.Get("Cache-Control") != "no-store" {
			a.errorf("%v", a.header)
		}
		a.reads(w, a.header.Get("Location"))

		id := strings.TrimPrefix(campaign, "/v1/campaigns/")
		b := w.do("POST", "/v1/webhooks", `{"url":"http://[2001:db8::1]:8080/a?b=c","events":["file.uploaded","response.created","file.uploaded"],`+
			`"secret":"sixteen letters!","campaignUuid":"`+id+`","disabled":true,"headers":{"x-token":"t","Authorization":"Bearer b"}}`).is(201, "").
			has(`"http://[2001:db8::1]:8080/a?b=c"`, "url").has(`["response.created","file.uploaded"]`, "events").
			has(`"`+id+`"`, "campaignUuid").has(`true`, "disabled").has(`{"X-Token":null,"Authorization":null}`, "headers").
			has(`"sixteen letters!"`, "secret")
		b.reads(w, b.header.Get("Location"))
		hook := w.kept(b.header.Get("Location"))
		want := []formsvc.Header{{Name: "Authorization", Value: "Bearer b"}, {Name: "X-Token", Value: "t"}}
		if hook.Secret != "sixteen letters!" || !slices.Equal(hook.Headers, want) {
			t.Errorf("stored %q and %+v", hook.Secret, hook.Headers)
		}
	})
}

func TestNullMeansAbsentInWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		nulls := hookBody("a", `"secret":null,"campaignUuid":null,"disabled":null,"headers":null`)
		a := w.do("POST", "/v1/webhooks", nulls).is(201, "").
			has(`null`, "campaignUuid").has(`false`, "disabled").has(`{}`, "headers")
		path := a.header.Get("Location")
		w.do("PUT", path, nulls).is(200, "").has(`null`, "campaignUuid")
		if got := w.kept(path).Secret; got != a.text("secret") {
			t.Error("null for a secret changed it")
		}
	})
}

func TestListWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.do("GET", "/v1/webhooks", "").is(200, "").has(`[]`, "items").has(`0`, "total").has(`null`, "nextCursor")
		w.webhook(hookBody("theirs"), as(w.other.key))
		var made []string
		for i := range 7 {
			made = append(made, strings.TrimPrefix(w.webhook(hookBody(fmt.Sprint(i))), "/v1/webhooks/"))
		}
		one := w.do("GET", "/v1/webhooks?limit=1&offset=2", "").is(200, "").
			has(`7`, "total").has(`1`, "limit").has(`2`, "offset")
		items, _ := one.at("items").([]any)
		if want := w.do("GET", "/v1/webhooks/"+made[4], "").object(); len(items) != 1 || !reflect.DeepEqual(items[0], want) {
			t.Errorf("%v, want %v", items, want)
		}
		w.do("GET", "/v1/webhooks?offset=7", "").is(200, "").has(`[]`, "items").has(`7`, "total").has(`null`, "nextCursor")
		w.do("GET", "/v1/webhooks?limit=5000", "").is(200, "").has(`1000`, "limit")
		for _, order := range []string{"desc", "asc"} {
			slices.Reverse(made)
			for limit := 1; limit <= 8; limit++ {
				var ids []string
				list := fmt.Sprintf("/v1/webhooks?order=%s&limit=%d", order, limit)
				for target := list; target != "" && len(ids) <= len(made); {
					page, next := w.page(target)
					ids = append(ids, page...)
					if target = ""; next != "" {
						target = list + "&cursor=" + next
					}
				}
				if !slices.Equal(ids, made) {
					t.Errorf("%s: %v, want %v", list, ids, made)
				}
				if w.do("GET", list, "").at("nextCursor") == nil != (limit >= len(made)) {
					t.Errorf("%s: nextCursor only where more follow", list)
				}
			}
		}
		_, next := w.page("/v1/webhooks?limit=1")
		w.do("DELETE", "/v1/webhooks/"+made[6], "").is(204, "")
		if ids, _ := w.page("/v1/webhooks?cursor=" + next); !slices.Equal(ids, []string{made[5], made[4], made[3], made[2], made[1], made[0]}) {
			t.Errorf("after its last item was deleted, a cursor goes on with %v", ids)
		}
		w.do("GET", "/v1/webhooks?cursor="+next, "", as(w.other.key)).is(400, "invalid_cursor")
		w.do("GET", "/v1/webhooks?order=asc&cursor="+next, "").is(400, "invalid_cursor")
		w.do("GET", "/v1/webhooks?status=x&state=failed&event=response.created", "").is(400, "invalid_parameter").
			faults("status unknown_parameter", "state unknown_parameter", "event unknown_parameter")
	})
}

func TestPutReplacesTheWholeWebhook(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := strings.TrimPrefix(w.campaign(plainCampaign), "/v1/campaigns/")
		path := w.webhook(hookBody("a", `"campaignUuid":"`+id+`","disabled":true,"headers":{"X-A":"1"}`))
		before := w.kept(path)
		w.now = w.now.Add(time.Second)
		a := w.do("PUT", path, `{"url":"https://example.com/b","events":["file.uploaded"]}`).is(200, "").
			has(`"https://example.com/b"`, "url").has(`["file.uploaded"]`, "events").has(`null`, "campaignUuid").has(`false`, "disabled").
			has(`{}`, "headers").has(`"2026-11-21T08:30:00.123Z"`, "createdAt").has(`"2026-11-21T08:30:01.123Z"`, "updatedAt").reads(w, path)
		if len(a.object()) != 9 || w.kept(path).Secret != before.Secret {
			t.Errorf("shows the secret or changed it: %s", a.body)
		}
		a = w.do("PUT", path, hookBody("b", `"secret":"a secret of one's own"`)).is(200, "")
		if len(a.object()) != 9 || w.kept(path).Secret != "a secret of one's own" {
			t.Errorf("shows the secret or did not change it: %s", a.body)
		}
	})
}

// A webhook can be changed and sent back as it was read; values that aren't shown are kept.
func TestReadModifyWriteOfWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
	})
}

// Creating the same webhook again returns the existing one, and never ignores what the request asks for.
func TestCreateExistingWebhookReturnsIt(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := strings.TrimPrefix(w.campaign(plainCampaign), "/v1/campaigns/")
		const (
			to     = `"url":"https://example.com/a"`
			events = `"events":["response.created","file.uploaded"]`
			secret = `"secret":"known to the one who asks"`
			tokens = `"headers":{"X-A":"1","X-B":"2"}`
		)
		body := func(members ...string) string { return "{" + strings.Join(members, ",") + "}" }
		different := []string{
			body(`"url":"https://example.com/A"`, events), body(to, `"events":["response.created"]`),
			body(to, events, `"campaignUuid":"`+id+`"`), body(to, `"events":["response.created","file.uploaded","response.updated"]`),
		}
		for _, body := range different {
			w.do("POST", "/v1/webhooks", body).is(201, "")
		}
		first := w.do("POST", "/v1/webhooks", body(to, events, secret, tokens)).is(201, "")
		for _, same := range []string{
			body(to, events), body(to, events, secret), body(to, events, secret, tokens), body(events, `"headers":{"x-b":"2","x-a":"1"}`, to, secret),
			body(to, `"events":["file.uploaded","response.created","response.created"]`), body(to, events, `"campaignUuid":null`),
		} {
			a := w.do("POST", "/v1/webhooks", same).is(200, "")
			if a.header.Get("Location") != first.header.Get("Location") || a.header.Get("Etag") != first.header.Get("Etag") {
				a.errorf("%v, want the headers of %v", a.header, first.header)
			}
			if len(a.object()) != 9 || a.text("uuid") != first.text("uuid") {
				a.errorf("%s, want %s without the secret", a.body, first.body)
			}
			a.reads(w, a.header.Get("Location"))
		}
		w.do("POST", "/v1/webhooks", body(to, events, `"disabled":true`)).is(200, "").has(`false`, "disabled")
		for _, other := range []string{
			body(to, events, `"secret":"another one of that length"`), body(to, events, `"headers":{"X-A":"1"}`),
			body(to, events, secret, `"headers":{"X-A":"1","X-B":"3"}`), body(to, events, tokens), body(to, `"events":["file.uploaded","response.created"]`, `"secret":"0123456789abcdef"`),
		} {
			a := w.do("POST", "/v1/webhooks", other).is(409, "webhook_exists")
			if !strings.Contains(a.problem().Detail, first.text("uuid")) || !strings.Contains(a.problem().Detail, "another secret or other headers") {
				a.errorf("does not say which and why: %s", a.body)
			}
		}
		if n := w.total("/v1/webhooks"); n != len(different)+1 {
			t.Errorf("%d webhooks", n)
		}
		w.do("POST", "/v1/webhooks", body(to, events), as(w.other.key)).is(201, "")
	})
}

func TestConcurrentCreatesMakeOneWebhook(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var requests []*http.Request
		for range 20 {
			requests = append(requests, w.request("POST", "/v1/webhooks", hookBody("a")))
		}
		statuses, bodies := w.atOnce(requests)
		if statuses[201] != 1 || statuses[200] != 19 {
			t.Errorf("statuses %v: %q", statuses, bodies)
		}
		id := w.do("POST", "/v1/webhooks", hookBody("a")).is(200, "").text("uuid")
		for _, body := range bodies {
			if !strings.Contains(body, id) {
				t.Errorf("%s is another webhook than %s", body, id)
			}
		}
		if n := w.total("/v1/webhooks"); n != 1 {
			t.Errorf("%d webhooks", n)
		}
	})
}

// The specification: at most 50 webhooks an account.
func TestWebhookLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var requests []*http.Request
		for i := range 60 {
			requests = append(requests, w.request("POST", "/v1/webhooks", hookBody(fmt.Sprint(i))))
		}
		statuses, bodies := w.atOnce(requests)
		if statuses[201] != 50 || statuses[409] != 10 {
			t.Errorf("statuses %v: %q", statuses, bodies)
		}
		if n := w.total("/v1/webhooks"); n != 50 {
			t.Errorf("%d webhooks", n)
		}
		a := w.do("POST", "/v1/webhooks", hookBody("one-more")).is(409, "webhook_limit")
		if !strings.Contains(a.problem().Detail, "50") {
			a.errorf("does not name the limit: %s", a.body)
		}
		ids, _ := w.page("/v1/webhooks")
		w.do("PUT", "/v1/webhooks/"+ids[0], hookBody("moved")).is(200, "")
		w.do("POST", "/v1/webhooks", hookBody("moved")).is(200, "")
		w.do("POST", "/v1/webhooks", hookBody("theirs"), as(w.other.key)).is(201, "")
		w.do("DELETE", "/v1/webhooks/"+ids[1], "").is(204, "")
		w.do("POST", "/v1/webhooks", hookBody("one-more")).is(201, "")
	})
}

func TestCampaignOfAWebhook(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		theirs := strings.TrimPrefix(w.campaign(plainCampaign, as(w.other.key)), "/v1/campaigns/")
		path := w.webhook(hookBody("a"))
		tag := w.do("GET", path, "").header.Get("Etag")
		id := header("X-Request-Id", "same")
		for _, row := range [][2]string{{"POST", "/v1/webhooks"}, {"PUT", path}, {"PUT", "/v1/webhooks/" + nobody}} {
			var bodies []string
			for _, campaign := range []string{theirs, nobody} {
				a := w.do(row[0], row[1], hookBody("b", `"campaignUuid":"`+campaign+`"`), id).is(422, "validation_failed").
					faults("/campaignUuid unknown_campaign")
				bodies = append(bodies, a.body)
			}
			if bodies[0] != bodies[1] {
				t.Errorf("another account's campaign: %s, none: %s", bodies[0], bodies[1])
			}
		}
		mine := strings.TrimPrefix(w.campaign(plainCampaign), "/v1/campaigns/")
		w.do("PUT", "/v1/webhooks/"+nobody, hookBody("b", `"campaignUuid":"`+mine+`"`)).is(404, "not_found")
		if n := w.total("/v1/webhooks"); n != 1 || w.do("GET", path, "").header.Get("Etag") != tag {
			t.Errorf("%d webhooks, or it was changed", n)
		}
	})
}

func TestDeleteWebhook(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path, other := w.webhook(hookBody("a")), w.webhook(hookBody("b"))
		made := w.do("POST", path+"/test", "").is(201, "").header.Get("Location")
		w.do("DELETE", path, "", as(w.other.key)).is(204, "")
		w.do("DELETE", path, "", header("If-Match", `"1-0"`)).is(400, "invalid_header")
		w.do("DELETE", path, "", header("If-None-Match", `*`)).is(400, "invalid_header")
		w.do("DELETE", path+"?x=1", "").is(400, "invalid_parameter")
		w.do("GET", path, "").is(200, "")
		w.do("GET", made, "").is(200, "")
		for range 2 {
			w.do("DELETE", path, "").is(204, "")
			w.do("GET", path, "").is(404, "not_found")
			w.do("PUT", path, hookBody("a")).is(404, "not_found")
			w.do("POST", path+"/test", "").is(404, "not_found")
			w.do("GET", path+"/deliveries", "").is(404, "not_found")
			w.do("GET", made, "").is(404, "not_found")
			w.do("POST", made+"/redeliver", "").is(404, "not_found")
		}
		w.do("GET", other, "").is(200, "")
		if n := w.total("/v1/webhooks"); n != 1 {
			t.Errorf("%d webhooks", n)
		}
	})
}

func TestWebhookConditions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
		put(`2-0`).is(400, "invalid_header")
		put(`*`).is(200, "")
		tag(w.do("POST", path+"/rotate", `{"gracePeriodSeconds":60}`), 200, `"5-1"`)
		w.do("GET", path, "", header("If-None-Match", `"5-1"`)).is(304, "")
		w.now = w.now.Add(time.Minute) // the old secret ends, which changes the webhook's representation
		tag(w.do("GET", path, "", header("If-None-Match", `"5-1"`)), 200, `"5-0"`)
		put(`"5-1"`).is(200, "") // and isn't a change by another client
		w.do("POST", path+"/rotate", `{}`, header("If-Match", `"6-0"`)).is(400, "invalid_header")
		tag(w.do("GET", path, ""), 200, `"6-0"`)
		w.do("PUT", "/v1/webhooks/"+nobody, hookBody("b"), header("If-Match", `"1-0", "2-0"`)).is(404, "not_found")
	})
}

func TestMethodsOfWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.webhook(hookBody("a"))
		for target, allow := range map[string]string{
			"/v1/webhooks": "GET, HEAD, POST", path: "GET, HEAD, PUT, DELETE", path + "/test": "POST", path + "/rotate": "POST",
			path + "/deliveries": "GET, HEAD", path + "/redeliver": "POST", "/v1/deliveries/" + nobody: "GET, HEAD",
			"/v1/deliveries/" + nobody + "/redeliver": "POST", "/v1/events": "GET, HEAD",
		} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				if slices.Contains(strings.Split(allow, ", "), method) {
					continue
				}
				a := w.do(method, target, "").is(405, "")
				if got := a.header.Get("Allow"); got != allow {
					a.errorf("Allow = %q, want %q", got, allow)
				}
			}
		}
		for _, none := range []string{"/v1/deliveries", "/v1/deliveries/", path + "/", path + "/enable", "/v1/events/" + nobody, "/v1/webhooks/x"} {
			w.do("GET", none, "").is(404, "not_found")
		}
	})
}

// Locations of new webhooks, under a prefix and behind a proxy.
func TestLocationsOfWebhooks(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		bare := w.api
		mux := http.NewServeMux()
		mux.Handle("/forms/", http.StripPrefix("/forms", bare))
		w.api = mux
		hook := w.do("POST", "/forms/v1/webhooks", hookBody("a")).is(201, "").header.Get("Location")
		w.do("GET", hook, "").is(200, "")
		a := w.do("POST", hook+"/test", "").is(201, "")
		if got, want := a.header.Get("Location"), "/forms/v1/deliveries/"+a.text("uuid"); got != want {
			t.Errorf("Location = %s, want %s", got, want)
		}
		w.do("GET", a.header.Get("Location"), "").is(200, "")
		w.serve(&httpx.Options{BaseURL: "https://forms.example.com/api/"})
		a = w.do("POST", strings.TrimPrefix(hook, "/forms")+"/test", "").is(201, "")
		if got, want := a.header.Get("Location"), "https://forms.example.com/api/v1/deliveries/"+a.text("uuid"); got != want {
			t.Errorf("Location = %s, want %s", got, want)
		}
		if got := w.do("POST", "/v1/webhooks", hookBody("a")).is(200, "").header.Get("Location"); got != "https://forms.example.com/api"+
			strings.TrimPrefix(hook, "/forms") {
			t.Errorf("Location = %s", got)
		}
	})
}
