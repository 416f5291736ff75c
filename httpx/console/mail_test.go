package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

const mailedConsole = "https://forms.example.com/console" // in links of mails

// deliverMails sends what is due to an inbox.
func (w *world) deliverMails(inbox *formsvctest.Inbox) []digest.Message {
	w.t.Helper()
	mails, err := digest.NewMailer(w.svc, inbox, &digest.MailerOptions{FormsURL: "https://forms.example.com/f", ConsoleURL: mailedConsole})
	w.must(err)
	engine, err := delivery.New(w.store, &delivery.Options{Mail: mails.Mail, Now: w.clock})
	w.must(err)
	_, err = engine.RunOnce(w.t.Context())
	w.must(err)
	list := inbox.Mails()
	for _, m := range list {
		for line := range strings.Lines(m.Text) {
			if link, ok := strings.CutPrefix(strings.TrimSpace(line), mailedConsole); ok {
				w.get(link).is(200)
				w.mailed++
			}
		}
	}
	return list
}

// An owner says who gets mails, without a word of webhooks, and sees them beside the response.
func TestMails(t *testing.T) {
	w := newWorld(t, &console.Options{Mail: true})
	w.signIn()
	var inbox formsvctest.Inbox
	campaign := w.campaign("Summer camp")
	path := "/campaigns/" + string(campaign.ID) + "/mail"
	page := w.get(path).is(200).says("Nobody gets a mail yet.").lacks("can't send mail")
	w.submit(page, path+"/notices", url.Values{"address": {"ada"}, "when": {"daily"}}).is(422).says("Enter one e-mail address")
	w.submit(page, path+"/notices", url.Values{"address": {"ada@example.com"}, "reply": {"true"}}).is(303).leadsTo(path).says("on its way", "waiting", "Ask again")
	w.submit(w.get(path), path+"/notices", url.Values{"address": {"ada@example.com"}}).is(303).leadsTo(path).says("there already")
	hook := must(w.svc.Webhooks.List(t.Context(), w.account.ID))[0]
	if !hook.Mail.ReplyTo || hook.CampaignID != campaign.ID || len(hook.Events) != 1 || hook.Events[0] != webhook.ResponseCreated {
		t.Errorf("%+v", hook)
	}
	if list := w.deliverMails(&inbox); len(list) != 1 || list[0].To != "ada@example.com" {
		t.Fatalf("%+v", list)
	}
	must(w.svc.Webhooks.Confirm(t.Context(), hook.MailToken(true)))
	test := "/webhooks/" + string(hook.ID) + "/test"
	w.submit(w.get(path).says("enabled", "Send a test"), test, url.Values{"back": {path}}).is(303).leadsTo(path).says("on its way")
	for _, elsewhere := range []string{"//example.com", "https://example.com", "/keys", path + "/../.."} {
		if to := w.submit(w.get(path), test, url.Values{"back": {elsewhere}}).is(303).header.Get("Location"); !strings.Contains(to, "/deliveries/") {
			t.Errorf("back to %q leads to %q", elsewhere, to)
		}
	}
	w.deliverMails(&inbox)

	page = w.get(path)
	w.submit(page, path, url.Values{"enabled": {"true"}, "subject": {strings.Repeat("s", 201)}, "replyTo": {"x"}, "version": {"1"}}).is(422).says("at most 200", "must be an e-mail address")
	w.submit(w.get(path), path, url.Values{"enabled": {"true"}, "text": {"See you."}, "version": {"1"}}).is(303).leadsTo(path).says("Saved.", "See you.")
	w.submit(w.get(path), path, url.Values{"text": {"Mine."}, "version": {"1"}}).is(409).says("Someone else changed", "Mine.", "See you.")
	campaign = must(w.svc.Campaigns.Get(t.Context(), campaign.Key()))
	if c := campaign.Form.Confirmation; !c.Enabled || c.Text != "See you." {
		t.Errorf("%+v", c)
	}
	// Another page's form keeps it.
	share := "/campaigns/" + string(campaign.ID) + "/share"
	w.submit(w.get(share), share, url.Values{"enabled": {"true"}, "version": {"2"}}).is(303)
	campaign = must(w.svc.Campaigns.Get(t.Context(), campaign.Key()))
	if !campaign.Form.Confirmation.Enabled {
		t.Error("publishing the form dropped its confirmation")
	}
	r := must(w.svc.Responses.Create(t.Context(), campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "bob@example.com"}, FormToken: campaign.FormToken}))
	inbox.Fail(func(m *digest.Message) error {
		if m.To == "bob@example.com" {
			return &delivery.MailError{Code: 550, Text: "550 <no> such user", Final: true}
		}
		return nil
	})
	w.deliverMails(&inbox)
	response := "/campaigns/" + string(campaign.ID) + "/responses/" + string(r.ID)
	page = w.get(response).is(200).says("bob@example.com failed", "550 <no> such user", "ada@example.com sent")
	w.get("/failures").is(200).says("Mails to people who sent a form", "Compare the address")
	w.get(w.get("/failures").linkTo("/deliveries/")).is(200).says("What the mail is made of").lacks("x-service-signature")
	list := must(w.svc.Deliveries.Mails(context.Background(), r.Key()))
	inbox.Fail(nil)
	w.submit(page, "/deliveries/"+string(list[0].ID)+"/redeliver", url.Values{"back": {response}}).is(303).leadsTo(response).says("sent again")
	w.deliverMails(&inbox)
	w.get(response).says("bob@example.com sent").lacks("failed")
	w.get("/webhooks/"+string(hook.ID)).is(200).says("Mails to ada@example.com").lacks("Rotate the secret", "HMAC")
	w.submit(w.get(path), "/webhooks/"+string(hook.ID)+"/delete", url.Values{"back": {path}}).is(303).leadsTo(path).says("Removed.", "Nobody gets a mail yet.")
}

// Without a mail server the page says what is missing.
func TestMailsWithoutServer(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Summer camp")
	w.get("/campaigns/" + string(campaign.ID) + "/mail").is(200).says("This server can't send mail yet.")
}

// An account without a place for another address isn't told that somebody changed the form.
func TestMailsToTooMany(t *testing.T) {
	w := newWorld(t, &console.Options{Mail: true})
	w.signIn()
	path := "/campaigns/" + string(w.campaign("Summer camp").ID) + "/mail"
	for i := range formsvc.MaxWebhooks {
		_, _, err := w.svc.Webhooks.Create(t.Context(), w.account.ID, formsvc.WebhookInput{URL: fmt.Sprint("https://example.com/", i), Events: webhook.EventTypes()[:1]})
		w.must(err)
	}
	w.submit(w.get(path), path+"/notices", url.Values{"address": {"ada@example.com"}}).is(409).says("Remove one first").lacks("Someone else")
}

// The links in a daily mail lead to its forms, and it has their language.
func TestDailyMail(t *testing.T) {
	w := newWorld(t, &console.Options{Mail: true})
	var inbox formsvctest.Inbox
	campaign := must(w.svc.Campaigns.Create(t.Context(), w.account.ID, formsvc.CampaignInput{Title: "Camp", EmailOptional: true, Form: formsvc.Form{Language: "de"}}))
	in := formsvc.WebhookInput{URL: "mailto:ada@example.com", Events: webhook.EventTypes()[:1], Mail: formsvc.MailInput{Daily: true}}
	hook, _, err := w.svc.Webhooks.Create(t.Context(), w.account.ID, in)
	w.must(err)
	w.deliverMails(&inbox)
	must(w.svc.Webhooks.Confirm(t.Context(), hook.MailToken(true)))
	must(w.svc.Responses.Create(t.Context(), campaign.Key(), formsvc.ResponseInput{}))
	w.now = w.now.Add(25 * time.Hour)
	w.signIn()
	w.must(w.svc.Webhooks.SendSummaries(t.Context()))
	list := w.deliverMails(&inbox)
	if len(list) != 1 || list[0].Subject != "Neue Antworten gestern: 1" || w.mailed != 1 {
		t.Errorf("%d links of %+v", w.mailed, list)
	}
}
