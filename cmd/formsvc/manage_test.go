//go:build long

package main_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// An expired key stops working.
func TestKeyExpires(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		var c *client
		lives := func(span time.Duration) bool {
			key := strings.TrimSpace(manage(t, dsn, "keys", "create", "--name", "short", "--permissions", "all", "--expires", span.String()))
			c = newClient(t, s.url, key)
			a, err := c.do(t.Context(), http.MethodGet, "/v1/me", nil)
			return err == nil && a.status == http.StatusOK
		}
		for span := 3 * time.Second; !lives(span); span *= 2 { // a busy machine may be slower than that
			if span > patience {
				t.Fatalf("a key for %v is refused at once", span)
			}
		}
		eventually(t, "the key expires", func() bool {
			a, err := c.do(t.Context(), http.MethodGet, "/v1/me", nil)
			return err == nil && a.status == http.StatusUnauthorized
		})
	})
}

// --json prints records as JSON, and their secrets only on creation.
func TestManagementPrintsJSON(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		manage(t, dsn, "accounts", "create", "Acme")
		key := object(t, []byte(manage(t, dsn, "keys", "create", "--name", "n", "--permissions", "files:read,campaigns:read",
			"--account", "Acme", "--json")))
		if v, _ := key["key"].(string); keyPattern.FindString(v) != v || v == "" {
			t.Errorf("keys create --json: key is %v", key["key"])
		}
		if p, _ := key["permissions"].([]any); len(p) != 2 {
			t.Errorf("keys create --json: permissions are %v", key["permissions"])
		}
		made := object(t, []byte(manage(t, dsn, "webhooks", "create", "--url", "https://example.com/x", "--events", "all",
			"--account", "Acme", "--json")))
		if v, _ := made["secret"].(string); len(v) < 32 {
			t.Errorf("webhooks create --json: the generated secret is %v", made["secret"])
		}
		list := manage(t, dsn, "webhooks", "list", "--account", "Acme", "--json")
		uuid, _ := made["uuid"].(string)
		short := attempt(t, dsn, "webhooks", "rotate", uuid, "--secret", "short", "--account", "Acme")
		if short.status != 0 || short.out != "short\n" || !strings.Contains(short.err, "The secret is weak") {
			t.Errorf("webhooks rotate with a short secret: %+v", short)
		}
		if long := attempt(t, dsn, "webhooks", "rotate", uuid, "--account", "Acme"); long.status != 0 || strings.Contains(long.err, "weak") {
			t.Errorf("webhooks rotate: %+v", long)
		}
		listed := object(t, []byte(list))
		if listed["uuid"] != made["uuid"] || listed["url"] != made["url"] {
			t.Errorf("webhooks list --json prints %s", list)
		}
		if _, ok := listed["secret"]; ok {
			t.Errorf("webhooks list shows the secret")
		}
		account := object(t, []byte(manage(t, dsn, "accounts", "list", "--json")))
		if account["name"] != "Acme" || !uuidPattern.MatchString(account["uuid"].(string)) {
			t.Errorf("accounts list --json prints %v", account)
		}
	})
}

// The keys and webhooks of one account see no data of another.
func TestAccountsAreIsolated(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		mine := newClient(t, s.url, s.firstKey(t))
		manage(t, dsn, "accounts", "create", "Other")
		key := strings.TrimSpace(manage(t, dsn, "keys", "create", "--name", "o", "--permissions", "all", "--account", "Other"))
		other := newClient(t, s.url, key)
		myReceiver, otherReceiver := receiver(t), receiver(t)
		hook(t, dsn, myReceiver.URL(), "all")
		hook(t, dsn, otherReceiver.URL(), "all", "--account", "Other")

		campaign := mine.campaign(t, "Mine")
		uuid := mine.submit(t, campaign, "mine").UUID
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{http.MethodGet, "/v1/campaigns/" + campaign, nil},
			{http.MethodPut, "/v1/campaigns/" + campaign, map[string]string{"title": "Taken"}},
			{http.MethodGet, responsesPath(campaign), nil},
			{http.MethodPost, responsesPath(campaign), submission("theirs")},
			{http.MethodGet, responsePath(campaign, uuid), nil},
			{http.MethodPatch, responsePath(campaign, uuid), map[string]string{"status": "completed"}},
		} {
			other.want(t, http.StatusNotFound, r.method, r.path, r.body, nil)
		}
		other.submit(t, other.campaign(t, "Theirs"), "theirs")

		got := append(arrivals(t, myReceiver, 1), arrivals(t, otherReceiver, 1)...)
		for i, want := range []string{"mine", "theirs"} {
			e := parsed(t, got[i].Delivery.Body)
			if marker, err := e.Data.Response.marker(); len(got) != 2 || err != nil || marker != want {
				t.Errorf("receiver %d got %q (%v), %d deliveries in all; want %q and 2", i+1, marker, err, len(got), want)
			}
		}
		r := attempt(t, dsn, "keys", "list", "--account", "Nobody")
		if r.status != 1 || !strings.Contains(r.err, "Nobody") {
			t.Errorf("an unknown account: status %d, %q", r.status, r.err)
		}
	})
}

// A deleted webhook gets no more requests, neither retries nor new events.
func TestDeletedWebhookGetsNothingMore(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "4s,100ms,100ms")
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Delete")
		gone, kept := receiver(t), receiver(t)
		gone.AnswerAlways(webhooktest.Reply{Status: 500})
		uuid := hook(t, dsn, gone.URL(), "response.created")
		c.submit(t, campaign, "before")
		arrivals(t, gone, 1)
		manage(t, dsn, "webhooks", "delete", uuid)
		before := len(gone.Deliveries())
		if out := manage(t, dsn, "webhooks", "list", "--json"); out != "" {
			t.Errorf("after the deletion there is the webhook %s", out)
		}

		kept.AnswerAlways(webhooktest.Reply{Status: 500})
		hook(t, dsn, kept.URL(), "response.created")
		c.submit(t, campaign, "after")
		// These retries are due after those of the deleted webhook would be.
		eventually(t, "another webhook fails for good", func() bool { return len(finalFailures(s)) == 1 })
		arrivals(t, kept, 4)
		if after := len(gone.Deliveries()); after != before {
			t.Errorf("the deleted webhook got %d more deliveries", after-before)
		}
	})
}

// The rows of a deleted webhook are removed when the server next prunes, for example at its start.
func TestDeletedWebhookIsPruned(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		uuid := hook(t, dsn, r.URL(), "all")
		c.submit(t, c.campaign(t, "Prune"), "x")
		arrivals(t, r, 1)
		s.terminate(t)
		s.stopped(t)
		manage(t, dsn, "webhooks", "delete", uuid)
		left := func() int { return rows(t, dsn, "formsvc_deliveries") + rows(t, dsn, "formsvc_attempts") }
		if n := left(); n != 2 {
			t.Errorf("INVALID: the deleted webhook left %d rows behind, want 2 that can be pruned", n)
		}
		start(t, dsn)
		eventually(t, "they are pruned", func() bool { return left() == 0 })
	})
}

// A webhook with a campaign or with fewer events gets only those.
func TestWebhookGetsOnlyItsEvents(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		one, two := c.campaign(t, "One"), c.campaign(t, "Two")
		ofOne, completions := receiver(t), receiver(t)
		hook(t, dsn, ofOne.URL(), "response.created", "--campaign", one)
		hook(t, dsn, completions.URL(), "response.completed")
		second := c.submit(t, two, "two")
		c.want(t, http.StatusOK, http.MethodPatch, responsePath(two, second.UUID), map[string]string{"status": "completed"}, nil)
		arrivals(t, completions, 1)
		first := c.submit(t, one, "one")
		for name, r := range map[string]*webhooktest.Receiver{first.UUID: ofOne, second.UUID: completions} {
			got := arrivals(t, r, 1)
			if e := parsed(t, got[0].Delivery.Body); len(got) != 1 || e.Data.Response.UUID != name {
				t.Errorf("got %d deliveries, the first is %s; want one", len(got), got[0].Delivery.Body)
			}
		}
	})
}
