//go:build long

package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// delivery is a delivery in the output of "webhooks deliveries --json".
type delivery struct {
	UUID, WebhookUUID, EventUUID, Event, State string
	Test                                       bool
	AttemptCount                               int
	SendingSince, NextAttemptAt                string // empty while they are null
	Attempts                                   []struct {
		Number     int
		StartedAt  time.Time
		DurationMs float64
		Status     int // 0 while it is null
		Error      string
		Answer     string
	}
}

// deliveries lists the deliveries of a webhook, newest first.
func deliveries(t testing.TB, dsn, uuid string, flags ...string) []delivery {
	t.Helper()
	return decoded[delivery](t, manage(t, dsn, append([]string{"webhooks", "deliveries", uuid, "--json", "--limit", "1000"}, flags...)...))
}

// decoded parses records that were printed as JSON.
func decoded[T any](t testing.TB, out string) (list []T) {
	t.Helper()
	for line := range strings.Lines(out) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		list = append(list, v)
	}
	return list
}

// A test event arrives at once, marked, signed and with the webhook's headers, and the command prints its result. This also
// works for a disabled webhook and a receiver that rejects it.
func TestTestEvent(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		start(t, dsn)
		r := receiver(t)
		uuid := hook(t, dsn, r.URL(), "response.completed", "--header", "X-Token: a,b; c", "--header", "x-other:1")
		result := attempt(t, dsn, "webhooks", "test", uuid)
		got := arrivals(t, r, 1)[0]
		if result.status != 0 || !strings.Contains(result.out, "delivered") || !strings.Contains(result.out, "200") ||
			!strings.Contains(result.err, "arrived") {
			t.Errorf("webhooks test: status %d\n%s%s", result.status, result.out, result.err)
		}
		if payload := object(t, got.Delivery.Body); payload["test"] != true || payload["event"] != "response.completed" {
			t.Errorf("the test event is %s", got.Delivery.Body)
		}
		if got.Header.Get("X-Token") != "a,b; c" || got.Header.Get("X-Other") != "1" {
			t.Errorf("it came with the headers %v", got.Header)
		}

		manage(t, dsn, "webhooks", "disable", uuid)
		r.AnswerAlways(webhooktest.Reply{Status: 418, Body: "a teapot\x1b[2J"})
		result = attempt(t, dsn, "webhooks", "test", uuid, "--json")
		d := decoded[delivery](t, result.out)
		if result.status != 1 || len(d) != 1 || d[0].State != "failed" || !d[0].Test || len(d[0].Attempts) != 1 ||
			d[0].Attempts[0].Status != 418 || !strings.Contains(result.err, `418 and "a teapot\x1b[2J"`) {
			t.Errorf("webhooks test of one that refuses: status %d\n%s%s", result.status, result.out, result.err)
		}
		result = attempt(t, dsn, "webhooks", "test", uuid, "--no-wait", "--json")
		if d := decoded[delivery](t, result.out); result.status != 0 || len(d) != 1 || d[0].State != "pending" {
			t.Errorf("webhooks test --no-wait: status %d\n%s%s", result.status, result.out, result.err)
		}
		arrivals(t, r, 3)
	})
}

// While a receiver is slow, commands and API show since when a delivery is being sent, and no next attempt.
func TestSendingSince(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		began := time.Now().Add(-time.Second)
		s := start(t, dsn)
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Hang: true})
		uuid := hook(t, dsn, r.URL(), "all")
		manage(t, dsn, "webhooks", "test", uuid, "--no-wait")
		arrivals(t, r, 1)
		d := deliveries(t, dsn, uuid)
		if len(d) != 1 || d[0].State != "pending" || d[0].NextAttemptAt != "" {
			t.Fatalf("under way it is %+v", d)
		}
		since, err := time.Parse(time.RFC3339, d[0].SendingSince)
		if err != nil || since.Before(began) || since.After(time.Now()) {
			t.Errorf("sending since %q", d[0].SendingSince)
		}
		if out := manage(t, dsn, "webhooks", "deliveries", uuid); !strings.Contains(out, "sending since "+since.Format(time.RFC3339)) {
			t.Errorf("webhooks deliveries prints\n%s", out)
		}
		c := newClient(t, s.url, s.firstKey(t))
		var shown map[string]any
		c.want(t, http.StatusOK, http.MethodGet, "/v1/deliveries/"+d[0].UUID, nil, &shown)
		if shown["sendingSince"] != d[0].SendingSince || shown["nextAttemptAt"] != nil {
			t.Errorf("the API shows %v", shown)
		}
	})
}

// Without a server, the command says so, and doesn't blame the receiver.
func TestTestEventWithoutServer(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	manage(t, dsn, "accounts", "create", "default")
	r := receiver(t)
	uuid := hook(t, dsn, r.URL(), "all")
	result := attempt(t, dsn, "webhooks", "test", uuid)
	if result.status != 1 || !strings.Contains(result.err, "No server") || !strings.Contains(result.out, "pending") {
		t.Errorf("webhooks test: status %d\n%s%s", result.status, result.out, result.err)
	}
	start(t, dsn)
	arrivals(t, r, 1) // it is sent when one runs
}

// Deliveries can be listed by state. One or all failed ones can be sent again with the same bytes and identifiers.
func TestRedeliver(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "100ms")
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Again")
		r := receiver(t)
		uuid := hook(t, dsn, r.URL(), "response.created")
		c.submit(t, campaign, "first")
		arrivals(t, r, 1)
		eventually(t, "it is recorded as delivered", func() bool { return len(deliveries(t, dsn, uuid, "--state", "delivered")) == 1 })
		r.AnswerAlways(webhooktest.Reply{Status: 503, Body: "down"})
		c.submit(t, campaign, "second")
		c.submit(t, campaign, "third")
		eventually(t, "two deliveries fail", func() bool { return strings.Count(s.log.String(), finalFailure) == 2 })
		failed := deliveries(t, dsn, uuid, "--state", "failed")
		done := deliveries(t, dsn, uuid, "--state", "delivered")
		if len(failed) != 2 || len(done) != 1 || len(deliveries(t, dsn, uuid)) != 3 || len(deliveries(t, dsn, uuid, "--state", "pending")) != 0 {
			t.Fatalf("listed as failed: %+v\ndelivered: %+v", failed, done)
		}
		if a := failed[0].Attempts; len(a) != 2 || a[1].Number != 2 || a[1].Status != 503 || a[1].Error != "status" || a[1].Answer != "down" ||
			a[1].DurationMs <= 0 || failed[0].AttemptCount != 2 || failed[0].NextAttemptAt != "" {
			t.Errorf("a failed one is %+v", failed[0])
		}

		r.AnswerAlways(webhooktest.Reply{})
		manage(t, dsn, "webhooks", "redeliver", done[0].UUID)
		got := arrivals(t, r, 6)
		if first, again := got[0], got[5]; string(first.Delivery.Body) != string(again.Delivery.Body) ||
			first.Header.Get("Webhook-Id") != again.Header.Get("Webhook-Id") || again.Delivery.ID != done[0].UUID {
			t.Errorf("sent again as\n%s %v\nfirst\n%s %v", again.Delivery.Body, again.Header, first.Delivery.Body, first.Header)
		}
		if out := manage(t, dsn, "webhooks", "redeliver", uuid, "--since", "1h"); out != "2\n" {
			t.Errorf("redeliver --since prints %q", out)
		}
		arrivals(t, r, 8)
		eventually(t, "all are delivered", func() bool { return len(deliveries(t, dsn, uuid, "--state", "delivered")) == 3 })
		if out := manage(t, dsn, "webhooks", "redeliver", uuid, "--since", "2026-01-01T00:00:00Z", "--json"); out != "{\"redelivered\":0}\n" {
			t.Errorf("redeliver --since of nothing prints %q", out)
		}
	})
}

// A disabled webhook gets no requests and no new deliveries. Its pending deliveries arrive when it is enabled.
func TestDisableAndEnable(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "3s")
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Disable")
		r, control := receiver(t), receiver(t)
		r.Answer(webhooktest.Reply{Status: 500})
		uuid := hook(t, dsn, r.URL(), "response.created")
		waiting := c.submit(t, campaign, "before").UUID
		arrivals(t, r, 1)
		manage(t, dsn, "webhooks", "disable", uuid)
		if w := object(t, []byte(manage(t, dsn, "webhooks", "get", uuid, "--json"))); w["disabled"] != true {
			t.Errorf("disabled, it is %v", w)
		}
		hook(t, dsn, control.URL(), "response.created")
		control.Answer(webhooktest.Reply{Status: 500})
		c.submit(t, campaign, "meanwhile")
		arrivals(t, control, 2) // the second is due after the retry of the disabled one
		if n := len(r.Deliveries()); n != 1 {
			t.Errorf("the disabled webhook got %d deliveries", n)
		}
		manage(t, dsn, "webhooks", "enable", uuid)
		got := arrivals(t, r, 2)
		if e := parsed(t, got[1].Delivery.Body); e.Data.Response.UUID != waiting {
			t.Errorf("enabled again it got %s", got[1].Delivery.Body)
		}
		if n := len(deliveries(t, dsn, uuid)); n != 1 {
			t.Errorf("it has %d deliveries; the event while it was disabled is none", n)
		}
	})
}

// Creating the same webhook twice prints the existing one without its secret, and says so.
func TestSubscribeTwice(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		manage(t, dsn, "accounts", "create", "default")
		args := []string{"webhooks", "create", "--url", "https://example.com/hook", "--events", "response.created,response.completed"}
		first := attempt(t, dsn, args...)
		again := attempt(t, dsn, args...)
		uuid := strings.Fields(first.out)[1]
		if !strings.Contains(first.out, "secret  whsec_") || strings.Contains(first.err, "whsec_") || first.status != 0 {
			t.Errorf("webhooks create: status %d\n%s%s", first.status, first.out, first.err)
		}
		if again.status != 0 || !strings.Contains(again.out, uuid) || strings.Contains(again.out+again.err, "whsec_") ||
			!strings.Contains(again.err, "already") {
			t.Errorf("again: status %d\n%s%s", again.status, again.out, again.err)
		}
		if record := object(t, []byte(manage(t, dsn, append(args, "--json")...))); record["uuid"] != uuid || record["secret"] != nil {
			t.Errorf("again, as JSON: %v", record)
		}
		other := attempt(t, dsn, append(args, "--secret", "sixteen bytes or more")...)
		if other.status != 1 || !strings.Contains(other.err, uuid) || strings.Contains(other.err, "sixteen bytes") {
			t.Errorf("with another secret: status %d\n%s%s", other.status, other.out, other.err)
		}
		if n := strings.Count(manage(t, dsn, "webhooks", "list", "--json"), "\n"); n != 1 {
			t.Errorf("there are %d webhooks", n)
		}
	})
}

// Errors name the mistake.
func TestWebhookCommandsNameTheMistake(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	s := start(t, dsn)
	c := newClient(t, s.url, s.firstKey(t))
	r := receiver(t)
	uuid := hook(t, dsn, r.URL(), "all")
	c.submit(t, c.campaign(t, "Errors"), "x")
	arrivals(t, r, 1)
	sent := deliveries(t, dsn, uuid)[0].UUID
	const nobody = "0198b0e1-3e6f-7c1a-8a4e-0123456789ab"
	create := "webhooks create --url https://example.com --events "
	for _, x := range []struct {
		args   string
		status int
		want   string
	}{
		{"webhooks get nonsense", 2, "nonsense"},
		{"webhooks get " + nobody, 1, nobody},
		{"webhooks delete " + nobody, 1, nobody},
		{"webhooks test " + nobody, 1, nobody},
		{"webhooks rotate " + nobody, 1, nobody},
		{"webhooks rotate " + uuid + " --secret " + strings.Repeat("x", 257), 1, "256"},
		{"webhooks rotate " + uuid + " --grace 9000h", 1, "gracePeriod"},
		{"webhooks disable " + nobody, 1, nobody},
		{"webhooks deliveries " + nobody, 1, nobody},
		{"webhooks deliveries " + uuid + " --state lost", 2, "--state"},
		{"webhooks deliveries " + uuid + " --limit 0", 2, "--limit"},
		{"webhooks redeliver " + nobody, 1, nobody},
		{"webhooks redeliver " + nobody + " --since 1h", 1, nobody},
		{"webhooks redeliver " + uuid, 2, "--since"},
		{"webhooks redeliver " + sent + " --since 1h", 2, "delivery"},
		{"webhooks redeliver " + uuid + " --since yesterday", 2, "yesterday"},
		{"webhooks redeliver " + uuid + " --since=-1h", 2, "future"},
		{create + "response.eaten", 1, "/events/0"},
		{create + "all --header token", 2, "--header"},
		{create + "all --header Host:example.com", 1, "/headers/Host"},
		{create + "all --campaign " + nobody, 1, "/campaignUuid"},
		{create + "all --campaign x", 2, "--campaign"},
		{create + "all --account Nobody", 1, "Nobody"},
		{"accounts contact default nonsense", 1, "e-mail"},
		{"accounts create Half --contact nonsense", 1, "--contact"},
		{"accounts contact " + nobody + " a@example.com", 1, nobody},
		{"secrets rotate-key --secret-keys x --drop-old", 2, "--drop-old"},
		{"secrets rotate-key --secret-keys x", 2, "--secret-keys"},
	} {
		got := attempt(t, dsn, strings.Fields(x.args)...)
		if got.status != x.status || !strings.Contains(got.err, x.want) || got.out != "" {
			t.Errorf("%s: status %d, %q, %q; want %d and %q", x.args, got.status, got.out, got.err, x.status, x.want)
		}
	}
}

// Changes by commands show in the API of the running server within 2 seconds, and vice versa.
func TestWebhookCommandsBesideARunningServer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		uuid := hook(t, dsn, "https://example.com/hook", "all", "--header", "X-Token: very-secret")
		path := "/v1/webhooks/" + uuid
		a := c.want(t, http.StatusOK, http.MethodGet, path, nil, nil)
		listed := object(t, []byte(manage(t, dsn, "webhooks", "get", uuid, "--json")))
		shown := object(t, a.body)
		for member, v := range listed {
			if w, ok := shown[member]; !ok || !equalJSON(v, w) {
				t.Errorf("%s is %v by the command, %v (%t) over the API", member, v, w, ok)
			}
		}
		manage(t, dsn, "webhooks", "disable", uuid)
		if v := object(t, c.want(t, http.StatusOK, http.MethodGet, path, nil, nil).body); v["disabled"] != true {
			t.Errorf("after webhooks disable the API shows %v", v)
		}
		for _, out := range []string{
			manage(t, dsn, "webhooks", "list"), manage(t, dsn, "webhooks", "list", "--json"), manage(t, dsn, "webhooks", "get", uuid),
			string(a.body), s.log.String(),
		} {
			if strings.Contains(out, "very-secret") || strings.Contains(out, secret) {
				t.Errorf("a secret is shown again: %s", out)
			}
		}
	})
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// The contact of an account can be set and removed.
func TestAccountContact(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		made := object(t, []byte(manage(t, dsn, "accounts", "create", "Acme", "--contact", "ops@example.com", "--json")))
		if made["contact"] != "ops@example.com" {
			t.Errorf("created: %v", made)
		}
		manage(t, dsn, "accounts", "contact", made["uuid"].(string), "dev@example.com")
		if out := manage(t, dsn, "accounts", "list"); !strings.Contains(out, "dev@example.com") {
			t.Errorf("accounts list prints %s", out)
		}
		none := object(t, []byte(manage(t, dsn, "accounts", "contact", "Acme", "none", "--json")))
		if v, ok := none["contact"]; !ok || v != nil {
			t.Errorf("without contact: %v", none)
		}
	})
}
