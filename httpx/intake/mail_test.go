package intake_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// The recipient of notices agrees and ends them on a page. Only a POST changes anything, and one click of a mail program is enough.
func TestMailPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, formsvc.CampaignInput{Title: "Rose & Co"}, nil)
	hook, _, err := w.svc.Webhooks.Create(t.Context(), w.account, formsvc.WebhookInput{
		URL: "mailto:ada@example.com", Events: webhook.EventTypes(), CampaignID: w.campaign.ID,
	})
	w.must(err)
	base := strings.TrimSuffix(w.url, w.campaign.FormToken) + "mail/"
	ask := func(method, token, language string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, base+token, strings.NewReader(url.Values{"List-Unsubscribe": {"One-Click"}}.Encode()))
		w.must(err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Accept-Language", language)
		resp, err := http.DefaultClient.Do(req)
		w.must(err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		w.must(err)
		return resp.StatusCode, string(body)
	}
	confirmed := func() bool {
		hook, err := w.svc.Webhooks.Get(t.Context(), formsvc.WebhookKey{AccountID: w.account, ID: hook.ID})
		w.must(err)
		return !hook.Disabled && !hook.Mail.ConfirmedAt.IsZero()
	}
	for _, step := range []struct {
		method, token, language string
		status                  int
		says                    string
		confirmed               bool
	}{
		{"GET", hook.MailToken(true), "de", 200, "wenn jemand Rose &amp; Co ausfüllt", false},
		{"HEAD", hook.MailToken(true), "de", 200, "", false},
		{"POST", hook.MailToken(true) + "x", "en", 404, "Form not found", false},
		{"POST", "x", "en", 404, "", false},
		{"POST", "", "en", 404, "", false},
		{"PUT", hook.MailToken(true), "en", 404, "", false},
		{"POST", hook.MailToken(true), "en", 200, "You get a mail when somebody answers Rose &amp; Co", true},
		{"POST", hook.MailToken(true), "en", 200, "You get a mail", true},
		{"GET", hook.MailToken(false), "en", 200, "Stop these mails", true},
		{"POST", hook.MailToken(false), "en", 200, "You get no more mails", false},
		{"POST", hook.MailToken(false), "en", 200, "You get no more mails", false},
	} {
		status, body := ask(step.method, step.token, step.language)
		if status != step.status || !strings.Contains(body, step.says) || confirmed() != step.confirmed {
			t.Errorf("%s with %.8q: %d, confirmed %t\n%s", step.method, step.token, status, confirmed(), body)
		}
	}
	w.must(w.svc.Webhooks.Delete(t.Context(), formsvc.WebhookKey{AccountID: w.account, ID: hook.ID}))
	if status, _ := ask("POST", hook.MailToken(true), "en"); status != 404 {
		t.Errorf("the link of a deleted notice: %d", status)
	}
}
