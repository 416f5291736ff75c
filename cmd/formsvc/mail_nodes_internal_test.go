package main

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Two nodes share a database: the limits of mails hold for both together, and a daily mail is made once.
func TestTwoNodesMail(t *testing.T) {
	t.Parallel()
	var inbox formsvctest.Inbox
	dsn, now := postgrestest.DSN(t), time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)
	var nodes []*formsvc.Service
	var engines []*delivery.Engine
	for range 2 {
		store := must(postgres.Open(t.Context(), dsn, nil))
		t.Cleanup(func() { _ = store.Close() })
		clock := func() time.Time { return now }
		svc := must(formsvc.New(store, &formsvc.Options{Now: clock}))
		mails := must(digest.NewMailer(svc, &inbox, &digest.MailerOptions{FormsURL: "https://forms.example.com/f"}))
		nodes, engines = append(nodes, svc), append(engines, must(delivery.New(store, &delivery.Options{Mail: mails.Mail, Now: clock})))
	}
	account := must(nodes[0].Accounts.Ensure(t.Context(), "owner"))
	form := must(nodes[0].Campaigns.Create(t.Context(), account, formsvc.CampaignInput{
		Title: "Form", Form: formsvc.Form{Enabled: true, Confirmation: formsvc.Confirmation{Enabled: true}},
	}))
	in := formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}, FormToken: form.FormToken}
	both := func(work func(i int) error) {
		t.Helper()
		var group errgroup.Group
		for i := range nodes {
			group.Go(func() error { return work(i) })
		}
		noError(t, group.Wait())
	}
	visit := func(i int) error { _, err := nodes[i].Responses.Create(t.Context(), form.Key(), in); return err }
	send := func(i int) error { _, err := engines[i].RunOnce(t.Context()); return err }
	for range 10 {
		both(visit)
	}
	both(send)
	equal(t, len(inbox.Mails()), formsvc.DefaultMailsPerAddress, "%d of 20 mails to one address")
	hook, _, err := nodes[0].Webhooks.Create(t.Context(), account, formsvc.WebhookInput{
		URL: "mailto:owner@example.com", Events: []formsvc.EventType{"response.created"}, Mail: formsvc.MailInput{Daily: true},
	})
	noError(t, err)
	_ = must(nodes[1].Webhooks.Confirm(t.Context(), hook.MailToken(true)))
	for range 5 {
		both(visit)
		both(send)
		inbox.Mails()
		now = now.Add(24 * time.Hour)
		both(func(i int) error { return nodes[i].Webhooks.SendSummaries(t.Context()) })
		both(send)
		equal(t, len(inbox.Mails()), 1, "%d daily mails")
	}
}
