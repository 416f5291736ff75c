package formsvc_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func created() []formsvc.EventType { return []formsvc.EventType{webhook.ResponseCreated} }

func TestWebhookURLs(t *testing.T) {
	w := newWorld(t)
	long := "https://example.com/" + strings.Repeat("x", 2028)
	for _, c := range []struct {
		url  string
		want []string
	}{
		{"http://example.com", nil},
		{"https://example.com:8443/a/b?c=d&e", nil},
		{"HTTPS://EXAMPLE.COM/", nil},
		{"http://127.0.0.1:9000/hook", nil}, // reachable addresses are decided elsewhere
		{"http://[::1]/", nil},
		{long, nil},
		{long + "x", []string{"/url too_long"}},
		{"", []string{"/url required"}},
		{"example.com", []string{"/url invalid_url"}},
		{"/hook", []string{"/url invalid_url"}},
		{"//example.com", []string{"/url invalid_url"}},
		{"ftp://example.com", []string{"/url invalid_url"}},
		{"file:///etc/passwd", []string{"/url invalid_url"}},
		{"http://", []string{"/url invalid_url"}},
		{"http:///hook", []string{"/url invalid_url"}},
		{"http://:80/hook", []string{"/url invalid_url"}},
		{"http://a b/", []string{"/url invalid_url"}},
		{"http://example.com:port/", []string{"/url invalid_url"}},
		{"http://user@example.com/", []string{"/url invalid_url"}},
		{"http://user:password@example.com/", []string{"/url invalid_url"}},
		{"http://@example.com/", []string{"/url invalid_url"}},
		{"http://example.com/#top", []string{"/url invalid_url"}},
		{"http://example.com/\n", []string{"/url invalid_url"}},
		{"http://example.com/\x00", []string{"/url invalid_url", "/url nul_not_allowed"}},
		{"http://example.com/\xff", []string{"/url invalid_utf8"}},
	} {
		_, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{URL: c.url, Events: created()})
		if got := faults(err); !slices.Equal(got, c.want) {
			t.Errorf("%.60q: got %q, want %q", c.url, got, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "password") && !strings.Contains(err.Error(), "or password") {
			t.Errorf("%v repeats the URL", err)
		}
	}
}

func TestWebhookInput(t *testing.T) {
	w := newWorld(t)
	const url = "https://example.com"
	type input = formsvc.WebhookInput
	for _, c := range []struct {
		label string
		in    input
		want  []string
	}{
		{"nothing", input{}, []string{"/url required", "/events required"}},
		{"no event", input{URL: url, Events: []formsvc.EventType{}}, []string{"/events required"}},
		{"unknown events", input{URL: url, Events: []formsvc.EventType{"", webhook.FileUploaded, "response.removed"}}, []string{
			"/events/0 unknown_event", "/events/2 unknown_event",
		}},
		{"shortest secret", input{URL: url, Events: created(), Secret: "x"}, nil},
		{"longest secret", input{URL: url + "/other", Events: created(), Secret: strings.Repeat("é", 128)}, nil},
		{"long secret", input{URL: url, Events: created(), Secret: strings.Repeat("é", 129)}, []string{"/secret out_of_range"}},
		{"NUL", input{URL: url, Events: created(), Secret: strings.Repeat("\x00", 16)}, []string{"/secret nul_not_allowed"}},
		{"not UTF-8", input{URL: url, Events: created(), Secret: strings.Repeat("\xff", 16)}, []string{"/secret invalid_utf8"}},
		{"everything", input{URL: "x", Events: []formsvc.EventType{"x"}, Secret: "canary" + strings.Repeat("é", 126)}, []string{
			"/url invalid_url", "/events/0 unknown_event", "/secret out_of_range",
		}},
	} {
		t.Run(c.label, func(t *testing.T) {
			_, _, err := w.svc.Webhooks.Create(w.ctx, w.account, c.in)
			wantFaults(t, err, c.want...)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%v repeats the secret", err)
			}
		})
	}
}

func TestCreateWebhook(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
		URL: "https://example.com", CampaignID: c.ID, Secret: "sixteen bytes at least",
		Events: []formsvc.EventType{webhook.FileUploaded, webhook.ResponseCreated, webhook.FileUploaded},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []formsvc.EventType{webhook.ResponseCreated, webhook.FileUploaded}; !slices.Equal(hook.Events, want) {
		t.Errorf("it listens to %q", hook.Events)
	}
	if hook.AccountID != w.account || hook.CampaignID != c.ID || hook.Secret != "sixteen bytes at least" || hook.Disabled ||
		hook.CreatedAt != start() || hook.UpdatedAt != start() {
		t.Errorf("made %+v", hook)
	}
	list, err := w.svc.Webhooks.List(w.ctx, w.account)
	if err != nil || len(list) != 1 || list[0].ID != hook.ID {
		t.Errorf("List returns %+v, %v", list, err)
	}
}

// Without a secret one is generated: 32 bytes, never the same twice.
func TestWebhookSecretIsGenerated(t *testing.T) {
	w := newWorld(t)
	pattern := regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`)
	seen := make(map[string]bool)
	for i := range formsvc.MaxWebhooks {
		hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
			URL: fmt.Sprintf("https://example.com/%d", i), Events: created(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if !pattern.MatchString(hook.Secret) || seen[hook.Secret] {
			t.Error("a secret does not look like 32 bytes, or came twice")
		}
		seen[hook.Secret] = true
	}
}

func TestWebhookLimit(t *testing.T) {
	w := newWorld(t)
	in := formsvc.WebhookInput{URL: "https://example.com", Events: created()}
	var last formsvc.Webhook
	for i := range formsvc.MaxWebhooks + 1 {
		in.URL = fmt.Sprintf("https://example.com/%d", i)
		hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, in)
		if full := i == 50; full != errors.Is(err, formsvc.ErrLimit) || full != (err != nil) {
			t.Fatalf("webhook %d: %v", i+1, err)
		}
		if err == nil {
			last = hook
		}
	}
	second := w.second()
	if _, _, err := w.svc.Webhooks.Create(w.ctx, second, in); err != nil {
		t.Error("another account:", err)
	}
	if err := w.svc.Webhooks.Delete(w.ctx, formsvc.WebhookKey{AccountID: w.account, ID: last.ID}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.svc.Webhooks.Create(w.ctx, w.account, in); err != nil {
		t.Error("after one was deleted:", err)
	}
}

func TestListens(t *testing.T) {
	e := formsvc.Event{AccountID: "a", CampaignID: "c", Type: webhook.ResponseUpdated}
	heard := formsvc.Webhook{AccountID: "a", Events: []formsvc.EventType{webhook.ResponseCreated, webhook.ResponseUpdated}}
	for _, c := range []struct {
		label string
		edit  func(*formsvc.Webhook)
		want  bool
	}{
		{"all campaigns", func(*formsvc.Webhook) {}, true},
		{"this campaign", func(w *formsvc.Webhook) { w.CampaignID = "c" }, true},
		{"another campaign", func(w *formsvc.Webhook) { w.CampaignID = "d" }, false},
		{"another account", func(w *formsvc.Webhook) { w.AccountID = "b" }, false},
		{"another type", func(w *formsvc.Webhook) { w.Events = w.Events[:1] }, false},
		{"disabled", func(w *formsvc.Webhook) { w.Disabled = true }, false},
	} {
		hook := heard
		c.edit(&hook)
		if got := hook.Listens(&e); got != c.want {
			t.Errorf("%s: %t", c.label, got)
		}
	}
}
