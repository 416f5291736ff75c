package formsvc_test

import (
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
		{"https://example.com:8443/a/b?c=d&e", nil},
		{"HTTPS://EXAMPLE.COM/", nil},
		{"http://127.0.0.1:9000/hook", nil}, // reachable addresses are decided elsewhere
		{"http://[::1]/", nil},
		{"https://example.com/a b/é?q=a b&c=\"<>\\^|&d=100%&%", nil},
		{"https://example.com/%C3%a9?q=a%20b+c", nil},
		{"http://example.com/?q=a\tb", []string{"/url invalid_url"}},
		{long, nil},
		{long + "x", []string{"/url too_long"}},
		{"", []string{"/url required"}},
		{"example.com", []string{"/url invalid_url"}},
		{"//example.com", []string{"/url invalid_url"}},
		{"ftp://example.com", []string{"/url invalid_url"}},
		{"http:///hook", []string{"/url invalid_url"}},
		{"http://:80/hook", []string{"/url invalid_url"}},
		{"http://a b/", []string{"/url invalid_url"}},
		{"http://user:password@example.com/", []string{"/url invalid_url"}},
		{"http://@example.com/", []string{"/url invalid_url"}},
		{"http://example.com/#top", []string{"/url invalid_url"}},
		{"http://example.com/\x00", []string{"/url invalid_url", "/url nul_not_allowed"}},
		{"http://example.com/\xff", []string{"/url invalid_utf8"}},
	} {
		hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{URL: c.url, Events: created()})
		equalAll(t, faults(err), c.want, "%.60q: got %q", c.url)
		if bad := ` "<>\^|é`; err == nil && (strings.ContainsAny(hook.URL, bad) || hook.URL != c.url && !strings.ContainsAny(c.url, bad) ||
			strings.HasSuffix(c.url, "%") && !strings.HasSuffix(hook.URL, "100%25&%25")) {
			t.Errorf("%.60q is stored as %.60q", c.url, hook.URL)
		}
		if err != nil && strings.Contains(err.Error(), "password") && !strings.Contains(err.Error(), "or password") {
			t.Errorf("%v repeats the URL", err)
		}
	}
}
