package formsvc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// errKilled stands for a process that ends right after a commit.
var errKilled = errors.New("killed")

// killed runs a function on a node that is killed after its first write of a webhook.
func (w *world) killed(do func() error) {
	w.tb.Helper()
	w.store.after = func(method string) error {
		return map[string]error{"CreateWebhook": errKilled, "UpdateWebhook": errKilled}[method]
	}
	defer func() { w.store.after = nil }()
	wantError(w.tb, do(), errKilled)
}

// The question whether to get mails commits with the webhook, and with its new address.
func TestQuestionCommitsWithWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := formsvc.WebhookInput{URL: "mailto:ada@example.com", Events: []formsvc.EventType{webhook.ResponseCreated}}
	w.killed(func() error { _, _, err := w.svc.Webhooks.Create(w.ctx, w.account, in); return err })
	hook := must(w.svc.Webhooks.List(w.ctx, w.account))[0]
	equal(t, w.deliveries(&hook, formsvc.DeliveryPending), 1, "%d questions to a new address")
	must(w.svc.Webhooks.Replace(w.ctx, formsvc.WebhookKey{AccountID: w.account, ID: hook.ID}, in))
	equal(t, w.deliveries(&hook, ""), 1, "%d questions to the same address")
	in.URL = "mailto:bob@example.com"
	w.killed(func() error {
		_, err := w.svc.Webhooks.Replace(w.ctx, formsvc.WebhookKey{AccountID: w.account, ID: hook.ID}, in)
		return err
	})
	equal(t, w.deliveries(&hook, formsvc.DeliveryPending), 2, "%d questions to two addresses")
}

// Two nodes that make a daily mail at the same moment make one, and so does one that is killed and started again.
func TestDailyMailIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, c := w.neighbour(), w.campaign()
	hook, _, err := w.svc.Webhooks.Create(w.ctx, w.account, formsvc.WebhookInput{
		URL: "mailto:ada@example.com", Events: []formsvc.EventType{webhook.ResponseCreated}, Mail: formsvc.MailInput{Daily: true},
	})
	noError(t, err)
	hook = must(w.svc.Webhooks.Confirm(w.ctx, hook.MailToken(true)))
	w.submitted(&c)
	w.clock.set(hook.Mail.NextAt)
	w.store.disturb(func(method string, _ int) error {
		if method == "UpdateWebhook" { // this node has read what the mail says
			return other.Webhooks.SendSummaries(w.ctx)
		}
		return nil
	})
	noError(t, w.svc.Webhooks.SendSummaries(w.ctx))
	w.store.disturb(nil)
	equal(t, w.deliveries(&hook, ""), 1+1, "%d mails with the question")
	w.submitted(&c)
	w.clock.add(24 * time.Hour)
	w.killed(func() error { return w.svc.Webhooks.SendSummaries(w.ctx) })
	noError(t, w.svc.Webhooks.SendSummaries(w.ctx))
	equal(t, w.deliveries(&hook, ""), 1+2, "%d mails with the question after two days")
}

// An address is known once a member with it has joined. An invitation alone, which anyone can be sent, isn't enough.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token := w.invite("bob", formsvc.Editor)
	equal(t, must(w.svc.Webhooks.Known(w.ctx, w.account, "bob@example.com")), false, "known: %t")
	_, _, err := w.enter(token)
	noError(t, err)
	equal(t, must(w.svc.Webhooks.Known(w.ctx, w.account, "Bob@example.com")), true, "known: %t")
}
