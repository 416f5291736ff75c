package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/storage/memory"
)

type sender struct{}

func (sender) Send(context.Context, string, string, string) error { return nil }

// Form, console and mail have the host's looks and words.
func TestTheme(t *testing.T) {
	store := memory.New()
	defer func() { _ = store.Close() }()
	svc := must(formsvc.New(store, &formsvc.Options{CheckResponse: func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error {
		return &formsvc.ValidationError{Fields: []formsvc.FieldError{{Pointer: "/responses/iban/value/0", Code: "invalid_iban", Detail: "must be an IBAN"}}}
	}}))
	account := must(svc.Accounts.Ensure(t.Context(), "example"))
	c := must(svc.Campaigns.Create(t.Context(), account, formsvc.CampaignInput{
		Title: "Refund", Form: formsvc.Form{Enabled: true}, EmailOptional: true, Modules: []formsvc.Module{{Name: "iban", Label: "Account"}},
	}))
	server := handler(svc)
	for path, wants := range map[string][]string{
		"/f/" + c.FormToken: {`alt="Rose &amp; Co"`, "Send to Rose &amp; Co", `>Imprint</a></footer>`, `.css">`, "theme-color"},
		"/forms/console/":   {`alt="Rose &amp; Co"`, " – Rose &amp; Co</title>", `>Imprint</a></footer>`, `.css">`, "theme-color"},
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		for _, want := range wants {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s lacks %q:\n%s", path, want, w.Body)
			}
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/f/"+c.FormToken, strings.NewReader(url.Values{"iban": {"1"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept-Language", "de")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if body := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, "Geben Sie eine IBAN an") || !strings.Contains(body, "Impressum") {
		t.Errorf("status %d: %s", w.Code, body)
	}
	if mails(svc, sender{}) == nil {
		t.Error("no mails")
	}
	if subject, text := digest.Themed(theme())(&formsvc.Digest{}); !strings.HasPrefix(subject, "Rose & Co: ") || !strings.HasSuffix(text, "\n\nRose & Co, 1 Main Street\n") {
		t.Errorf("%s\n%s", subject, text)
	}
}
