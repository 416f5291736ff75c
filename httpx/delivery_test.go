package httpx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// deliver creates a webhook and a response. It returns the paths of the webhook and of the delivery.
func (w *world) deliver(name string) (hook, made string) {
	w.tb.Helper()
	hook = w.webhook(hookBody(name))
	w.response(w.campaign(plainCampaign))
	ids, _ := w.page(hook + "/deliveries")
	if len(ids) != 1 {
		w.tb.Fatalf("%d deliveries, want 1", len(ids))
	}
	return hook, "/v1/deliveries/" + ids[0]
}

// A delivery's fields from its creation to its last attempt.
func TestDeliveryMembers(t *testing.T) {
	w := newWorld(t, nil)
	hook, path := w.deliver("a")
	event := w.do("GET", "/v1/events", "").at("items").([]any)[0].(map[string]any)
	w.do("GET", path, "").is(200, "").has(`"`+strings.TrimPrefix(hook, "/v1/webhooks/")+`"`, "webhookUuid").
		has(`"`+event["id"].(string)+`"`, "eventUuid").has(`0`, "attemptCount").has(`"2026-11-21T08:30:00.123Z"`, "nextAttemptAt").
		has(`null`, "sendingSince").has(`null`, "updatedAt").has(`[]`, "attempts")
	w.now = w.now.Add(time.Second)
	claims := w.claim()
	w.now = w.now.Add(time.Minute - time.Millisecond)
	sending := w.do("GET", path, "").is(200, "").has(`"pending"`, "state").
		has(`"2026-11-21T08:30:01.123Z"`, "sendingSince").has(`null`, "nextAttemptAt")
	w.do("GET", hook+"/deliveries", "").is(200, "").has("["+sending.body+"]", "items")
	w.now = w.now.Add(time.Millisecond) // the lease ends
	w.do("GET", path, "").is(200, "").has(`null`, "sendingSince").has(`"2026-11-21T08:31:01.123Z"`, "nextAttemptAt")
	w.now = w.now.Add(-time.Minute)
	w.finish(claims, delivery.Postponed, w.now.Add(time.Minute), delivery.Attempt{
		Duration: 30 * time.Second, Error: delivery.ClassTimeout,
	})
	a := w.do("GET", path, "").is(200, "").has(`"pending"`, "state").has(`1`, "attemptCount").
		has(`"2026-11-21T08:31:01.123Z"`, "nextAttemptAt").
		has(`[{"number":1,"startedAt":"2026-11-21T08:30:01.123Z","durationMs":30000,"status":null,"error":"timeout","answer":""}]`, "attempts")
	w.do("GET", path, "", header("If-None-Match", sending.header.Get("Etag"))).is(200, "")
	if a.at("updatedAt") == nil {
		a.errorf("no updatedAt: %s", a.body)
	}
	w.now = w.now.Add(time.Minute)
	w.fail()
	failed := w.do("GET", path, "").is(200, "").has(`"failed"`, "state").has(`2`, "attemptCount").has(`null`, "nextAttemptAt")
	if !strings.Contains(failed.body, `,{"number":2,"startedAt":"2026-11-21T08:31:01.123Z","durationMs":1.5,"status":503,"error":"status","answer":"later"}]`) {
		failed.errorf("%s", failed.body)
	}
	w.do("POST", path+"/redeliver", "").is(200, "").has(`"pending"`, "state").has(`"2026-11-21T08:31:01.123Z"`, "nextAttemptAt").
		has(`2`, "attemptCount")
	w.finish(w.claim(), delivery.Delivered, time.Time{}, delivery.Attempt{Duration: time.Microsecond, Status: 204})
	a = w.do("GET", path, "").is(200, "").has(`"delivered"`, "state").has(`3`, "attemptCount").has(`null`, "nextAttemptAt")
	attempts, _ := a.at("attempts").([]any)
	if m, _ := attempts[len(attempts)-1].(map[string]any); len(attempts) != 3 || m["status"] != 204.0 || m["error"] != nil || m["durationMs"] != 0.001 {
		a.errorf("attempts %v", attempts)
	}
}

func TestSendTestEvent(t *testing.T) {
	w := newWorld(t, nil)
	hook := w.webhook(hookBody("a", `"disabled":true`))
	a := w.do("POST", hook+"/test", "").is(201, "").has(`true`, "test").has(`"pending"`, "state").has(`"response.created"`, "event").
		has(`[]`, "attempts").has(`"2026-11-21T08:30:00.123Z"`, "nextAttemptAt")
	if got := a.header.Get("Location"); got != "/v1/deliveries/"+a.text("uuid") || a.header.Get("Etag") == "" {
		a.errorf("%v", a.header)
	}
	if again := w.do("GET", a.header.Get("Location"), "").is(200, ""); again.body != a.body || again.header.Get("Etag") != a.header.Get("Etag") {
		t.Errorf("answered %s, reads %s", a.body, again.body)
	}
	w.do("GET", "/v1/events", "").is(200, "").has(`[]`, "items")
	w.fail()
	w.do("GET", a.header.Get("Location"), "").is(200, "").has(`"failed"`, "state").has(`true`, "test")
}

// Deliveries can be filtered by their state.
func TestListDeliveries(t *testing.T) {
	w := newWorld(t, nil)
	hook, failed := w.deliver("a")
	w.fail()
	w.response(w.campaign(plainCampaign))
	for state, want := range map[string]int{"failed": 1, "pending": 1, "delivered": 0, "": 2} {
		ids, _ := w.page(hook + "/deliveries?state=" + state)
		if len(ids) != want || state == "failed" && "/v1/deliveries/"+ids[0] != failed || w.total(hook+"/deliveries?state="+state) != want {
			t.Errorf("%q: %v, want %d", state, ids, want)
		}
	}
	_, next := w.page(hook + "/deliveries?limit=1")
	w.do("GET", hook+"/deliveries?state=pending&cursor="+next, "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
}

// A receiver's reply is shown as text, whatever it was, and truncated in lists.
func TestReceiverRepliesAreShownAsText(t *testing.T) {
	w := newWorld(t, nil)
	for i, row := range []struct{ answer, single, list string }{
		{"a\x00b\r\n\x1b[31m", "a\x00b\r\n\x1b[31m", "a\x00b\r\n\x1b[31m"},
		{"\xff\xfe\x80é", "\uFFFD\uFFFD\uFFFDé", "\uFFFD\uFFFD\uFFFDé"},
		{strings.Repeat("x", 257), strings.Repeat("x", 257), strings.Repeat("x", 256)},
		{strings.Repeat("x", 253) + "😀", strings.Repeat("x", 253) + "😀", strings.Repeat("x", 253)},
		{strings.Repeat("\x80", 4<<10), strings.Repeat("\uFFFD", 4<<10), strings.Repeat("\uFFFD", 256)},
	} {
		hook, path := w.deliver(fmt.Sprint(i))
		w.finish(w.claim(), delivery.Delivered, time.Time{}, delivery.Attempt{Status: 200, Answer: []byte(row.answer)})
		single, _ := json.Marshal(row.single)
		list, _ := json.Marshal(row.list)
		for target, want := range map[string][]byte{path: single, hook + "/deliveries": list} {
			var shown any
			a := w.do("GET", target, "").is(200, "")
			for _, part := range regexp.MustCompile(`"answer":("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(a.body, -1) {
				_ = json.Unmarshal([]byte(part[1]), &shown)
			}
			if text, _ := json.Marshal(shown); !bytes.Equal(text, want) || !utf8.ValidString(a.body) {
				a.errorf("%.20q: shown as %.20s, want %.20s", row.answer, text, want)
			}
		}
		w.do("DELETE", hook, "").is(204, "")
	}
}

func TestRedeliver(t *testing.T) {
	w := newWorld(t, nil)
	hook, path := w.deliver("a")
	claims := w.claim()
	w.do("POST", path+"/redeliver", "").is(409, "delivery_in_progress")
	w.do("GET", path, "").is(200, "").has(`"pending"`, "state")
	w.finish(claims, delivery.Failed, time.Time{}, delivery.Attempt{Status: 500, Error: delivery.ClassStatus})
	w.do("PUT", hook, hookBody("b", `"disabled":true`)).is(200, "")
	w.now = w.now.Add(time.Hour)
	w.do("POST", path+"/redeliver", "").is(200, "").has(`"pending"`, "state").has(`1`, "attemptCount")
	again := w.claim()
	if len(again) != 1 || again[0].ID != claims[0].ID || again[0].EventID != claims[0].EventID {
		t.Errorf("%+v, want %+v again", again, claims)
	}
}

func TestRedeliverFailed(t *testing.T) {
	w := newWorld(t, nil)
	hook, twin := w.webhook(hookBody("a")), w.webhook(hookBody("b"))
	campaign := w.campaign(plainCampaign)
	for range 3 {
		w.response(campaign)
		w.fail()
		w.now = w.now.Add(time.Minute)
	}
	for _, row := range [][2]string{
		{"2026-11-21T08:33:00Z", `0`}, {"2026-11-21T08:32:00.124Z", `1`}, // an attempt of 1.5 ms ended after it began
		{"2026-11-21T09:31:00+01:00", `1`}, // the other one is pending already
	} {
		w.do("POST", hook+"/redeliver", `{"since":"`+row[0]+`"}`).is(200, "").has(row[1], "redelivered")
	}
	if mine, theirs := w.total(hook+"/deliveries?state=failed"), w.total(twin+"/deliveries?state=failed"); mine != 1 || theirs != 3 {
		t.Errorf("%d failed deliveries are left, and %d of another webhook", mine, theirs)
	}
}
