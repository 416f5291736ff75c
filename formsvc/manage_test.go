package formsvc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// hook creates a webhook that listens to everything unless edits say otherwise.
func (w *world) hook(edits ...func(*formsvc.WebhookInput)) formsvc.Webhook {
	w.tb.Helper()
	in := formsvc.WebhookInput{URL: "https://example.com/hook", Events: webhook.EventTypes()}
	for _, edit := range edits {
		edit(&in)
	}
	hook, created, err := w.svc.Webhooks.Create(w.ctx, w.account, in)
	if err != nil || !created {
		w.tb.Fatalf("created %t, %v", created, err)
	}
	return hook
}

func hookKey(w *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: w.AccountID, ID: w.ID}
}

// Subscribing again is harmless, no part of the input is ignored silently, and nobody can guess a secret or header.
func TestCreateWebhookTwice(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	first := w.hook(func(in *formsvc.WebhookInput) {
		in.Secret = "sixteen bytes at least"
		in.Headers = []formsvc.HeaderInput{{Name: "X-Token", Value: "t"}}
	})
	same := formsvc.WebhookInput{URL: first.URL, Events: slices.Concat(first.Events[3:], first.Events[:3])}
	token := func(value string) []formsvc.HeaderInput {
		return []formsvc.HeaderInput{{Name: "x-token", Value: value}}
	}
	for _, x := range []struct {
		label string
		edit  func(*formsvc.WebhookInput)
		made  bool
		want  error
	}{
		{"the same", func(*formsvc.WebhookInput) {}, false, nil},
		{"the same secret", func(in *formsvc.WebhookInput) { in.Secret = first.Secret }, false, formsvc.ErrConflict},
		{"the same headers", func(in *formsvc.WebhookInput) { in.Headers = token("t") }, false, formsvc.ErrConflict},
		{"another secret", func(in *formsvc.WebhookInput) { in.Secret = "sixteen bytes, but others" }, false, formsvc.ErrConflict},
		{"other events", func(in *formsvc.WebhookInput) { in.Events = created() }, true, nil},
		{"another URL", func(in *formsvc.WebhookInput) { in.URL += "/" }, true, nil},
		{"a campaign", func(in *formsvc.WebhookInput) { in.CampaignID = c.ID }, true, nil},
	} {
		in := same
		x.edit(&in)
		hook, made, err := w.svc.Webhooks.Create(w.ctx, w.account, in)
		if made != x.made || !errors.Is(err, x.want) || x.want == nil && (hook.ID == first.ID) == x.made || x.want != nil && hook.ID != "" {
			t.Errorf("%s: %+v, %t, %v", x.label, hook, made, err)
		}
		if err != nil && (!strings.Contains(err.Error(), string(first.ID)) || strings.Contains(err.Error(), "sixteen")) {
			t.Errorf("%s: %v does not name the webhook, or tells a secret", x.label, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	many := make([]formsvc.HeaderInput, 11)
	for i := range many {
		many[i] = formsvc.HeaderInput{Name: fmt.Sprintf("X-%d", i), Value: "v"}
	}
	one := func(name, value string) []formsvc.HeaderInput {
		return []formsvc.HeaderInput{{Name: name, Value: value}}
	}
	for i, c := range []struct {
		in   []formsvc.HeaderInput
		want []string
	}{
		{many[:10], nil},
		{many, []string{"/headers too_many"}},
		{one("Authorization", "Bearer canary"), nil},
		{one("x-a", strings.Repeat("x", 2048)), nil},
		{one("x-a", strings.Repeat("x", 2049)), []string{"/headers/x-a invalid_header"}},
		{one(strings.Repeat("x", 101), "canary"), []string{"/headers invalid_header"}},
		{one("", "canary"), []string{"/headers invalid_header"}},
		{one("X-É", "canary"), []string{"/headers invalid_header"}},
		{one("a:", "canary"), []string{"/headers invalid_header"}},
		{one("X~A", ""), []string{"/headers/X~0A invalid_header"}},
		{one("X-A", "canary\r\nX-B: c"), []string{"/headers/X-A invalid_header"}},
		{one("X-A", " canary"), []string{"/headers/X-A invalid_header"}},
		{one("X-A", "canaré"), []string{"/headers/X-A invalid_header"}},
		{slices.Concat(one("X-A", "1"), one("x-a", "2")), []string{"/headers/x-a duplicate"}},
		{[]formsvc.HeaderInput{{Name: "X-B", Keep: true}, {Name: "X-A", Keep: true}}, []string{
			"/headers/X-B required", "/headers/X-A required",
		}},
	} {
		hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
			URL: fmt.Sprintf("https://example.com/%d", i), Events: created(), Headers: c.in,
		})
		wantFaults(t, err, c.want...)
		if err != nil && strings.Contains(err.Error(), "canary") || strings.Contains(fmt.Sprintf("%+v", hook), "canary") {
			t.Errorf("%v or the webhook tells the value", err)
		}
	}
	for _, name := range []string{"host", "Content-Length", "x-service-new", "webhook-id", "traceparent"} {
		_, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
			URL: "https://example.com", Events: created(), Headers: one(name, "v"),
		})
		wantFaults(t, err, "/headers/"+name+" reserved_header")
	}
}

// A kept value is the one at the time of the write, not one that was read before.
func TestKeptHeaderHasItsLatestValue(t *testing.T) {
	w := newWorld(t)
	value := func(v string) []formsvc.HeaderInput { return []formsvc.HeaderInput{{Name: "X-A", Value: v}} }
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Headers = value("1") })
	in := formsvc.WebhookInput{URL: hook.URL, Events: created(), Headers: value("2")}
	w.store.disturb(func(method string, call int) error {
		if method == "UpdateWebhook" && call == 1 {
			_, err := w.neighbour().Webhooks.Replace(w.ctx, hookKey(&hook), in)
			return err
		}
		return nil
	})
	keep := in
	keep.Headers = []formsvc.HeaderInput{{Name: "X-A", Keep: true}}
	got, err := w.svc.Webhooks.Replace(w.ctx, hookKey(&hook), keep)
	if err != nil || len(got.Headers) != 1 || got.Headers[0].Value != "2" {
		t.Errorf("%v %q, %v", got.Headers, got.Headers[0].Value, err)
	}
}

func TestRotate(t *testing.T) {
	w := newWorld(t)
	hook := w.hook()
	first := hook.Secret
	for _, r := range []formsvc.Rotation{{Grace: -1}, {Grace: formsvc.MaxGrace + 1}, {Secret: strings.Repeat("x", 257)}} {
		wantError(t, failure(w.svc.Webhooks.Rotate(w.ctx, hookKey(&hook), r)), formsvc.ErrInvalid)
	}
	second, err := w.svc.Webhooks.Rotate(w.ctx, hookKey(&hook), formsvc.Rotation{Grace: time.Hour})
	if err != nil || second.Secret == first || len(second.Secret) < 32 || second.Previous != first ||
		second.PreviousUntil != start().Add(time.Hour) || second.Version != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	w.clock.add(time.Hour - time.Millisecond)
	if list, err := w.svc.Webhooks.List(w.ctx, w.account); err != nil || list[0].Previous != first {
		t.Errorf("within the grace period: %+v, %v", list, err)
	}
	w.clock.add(time.Millisecond)
	if got, err := w.svc.Webhooks.Get(w.ctx, hookKey(&hook)); err != nil || got.Previous != "" || !got.PreviousUntil.IsZero() {
		t.Errorf("after it: %+v, %v", got, err)
	}
	third, err := w.svc.Webhooks.Rotate(w.ctx, hookKey(&hook), formsvc.Rotation{Secret: "a secret of my own", Grace: time.Hour})
	if err != nil || third.Secret != "a secret of my own" || third.Previous != second.Secret {
		t.Fatalf("%+v, %v", third, err)
	}
	last, err := w.svc.Webhooks.Rotate(w.ctx, hookKey(&hook), formsvc.Rotation{})
	if err != nil || last.Previous != "" || !last.PreviousUntil.IsZero() || last.Secret == third.Secret {
		t.Fatalf("%+v, %v", last, err)
	}
}

// A change of another version than the latest one is refused.
func TestStaleVersions(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	hook := w.hook(func(in *formsvc.WebhookInput) { in.CampaignID = c.ID })
	in := formsvc.WebhookInput{URL: hook.URL, Events: hook.Events, CampaignID: c.ID, Secret: "a secret of my own"}
	equal(t, must(w.svc.Webhooks.Replace(w.ctx, hookKey(&hook), in)).Secret, in.Secret, "the secret is %q")
	in.IfVersion = 1
	wantError(t, failure(w.svc.Webhooks.Replace(w.ctx, hookKey(&hook), in)), formsvc.ErrStale)
	wantError(t, failure(w.svc.Campaigns.Replace(w.ctx, c.Key(), formsvc.CampaignInput{Title: "x", IfVersion: 2})), formsvc.ErrStale)
	wantError(t, failure(w.update(&r, formsvc.ResponsePatch{IfVersion: 2})), formsvc.ErrStale)
}

func TestSetDisabled(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook()
	for i, want := range []struct {
		disabled bool
		version  int64
	}{{false, 1}, {true, 2}, {true, 2}, {false, 3}} {
		got, err := w.svc.Webhooks.SetDisabled(w.ctx, hookKey(&hook), want.disabled)
		if err != nil || got.Disabled != want.disabled || got.Version != want.version {
			t.Errorf("step %d: %+v, %v", i, got, err)
		}
		w.submitted(&c)
	}
	equal(t, w.deliveries(&hook, ""), 2, "%d deliveries")
}

// A test event has the fields of a real event of its type.
func TestTestEventsResembleRealOnes(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	for _, bound := range []bool{false, true} {
		for _, eventType := range webhook.EventTypes() {
			hook := w.hook(func(in *formsvc.WebhookInput) {
				in.Events, in.Disabled = []formsvc.EventType{eventType}, true
				if bound {
					in.CampaignID = c.ID
				}
			})
			d, err := w.svc.Webhooks.Test(w.ctx, hookKey(&hook))
			if err != nil || d.State != formsvc.DeliveryPending || !d.Test || d.Event != eventType || d.WebhookID != hook.ID {
				t.Fatalf("%s: %+v, %v", eventType, d, err)
			}
			bodies := must(w.queue().Payloads(w.ctx, []string{string(d.EventID)}))
			e, err := webhook.ParseEvent(bodies[string(d.EventID)].Body)
			if err != nil || !e.Test || e.Type != eventType || e.ID != string(d.EventID) || e.Data.Response.UUID == "" ||
				e.Data.Response.User.Email == "" || (e.Data.Campaign.UUID == string(c.ID)) != bound {
				t.Errorf("%s: %+v, %v", eventType, e, err)
			}
			for i, x := range []struct{ is, has bool }{
				{eventType == webhook.FileUploaded, e.Data.File != nil},
				{eventType == webhook.SignatureCompleted, e.Data.Signature != nil},
				{eventType == webhook.ResponseUpdated, len(e.Data.Changes) > 0},
				{eventType == webhook.ResponseStatusChanged || eventType == webhook.ResponseCompleted, e.Data.PreviousStatus != ""},
			} {
				equal(t, x.is, x.has, "%s: extra %d: %s has it: %t", eventType, i, bodies[string(d.EventID)])
			}
		}
	}
	equal(t, len(w.events()), 0, "the feed has %d events")
}

// A caller who changes a webhook's URL must not receive header values that were given for another origin.
func TestReplaceNeedsHeadersAgainForAnotherOrigin(t *testing.T) {
	for url, again := range map[string]bool{
		"https://example.com/other": false, "https://EXAMPLE.com:443/hook": false, "https://example.com:8443/hook": true,
		"http://example.com/hook": true, "https://example.org/hook": true, "https://example.com./hook": true, "https://a.example.com/hook": true,
	} {
		w := newWorld(t)
		hook := w.hook(func(in *formsvc.WebhookInput) {
			in.Headers = []formsvc.HeaderInput{{Name: "Authorization", Value: "Bearer t"}, {Name: "X-A", Value: "1"}}
		})
		in := formsvc.WebhookInput{
			URL: url, Events: hook.Events, Headers: []formsvc.HeaderInput{{Name: "authorization", Keep: true}, {Name: "X-A", Value: "2"}},
		}
		_, err := w.svc.Webhooks.Replace(w.ctx, hookKey(&hook), in)
		if !again {
			wantFaults(t, err)
			continue
		}
		wantFaults(t, err, "/headers/authorization required")
		in.Headers[0] = formsvc.HeaderInput{Name: "Authorization", Value: "Bearer u"}
		if _, err = w.svc.Webhooks.Replace(w.ctx, hookKey(&hook), in); err != nil {
			t.Errorf("%s with the value: %v", url, err)
		}
	}
}
