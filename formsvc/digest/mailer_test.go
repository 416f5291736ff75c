package digest_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A mailWorld is a service whose mails arrive in an inbox.
type mailWorld struct {
	*formsvctest.Service

	t      *testing.T
	inbox  formsvctest.Inbox
	engine *delivery.Engine
	form   formsvc.Campaign
}

func newMailWorld(t *testing.T, change func(*formsvc.CampaignInput)) *mailWorld {
	t.Helper()
	store := memory.New()
	w := &mailWorld{Service: formsvctest.New(t, &formsvctest.Options{Store: store}), t: t}
	mails, err := digest.NewMailer(w.Service.Service, &w.inbox, &digest.MailerOptions{
		FormsURL: "https://forms.example.com/f/", ConsoleURL: "https://forms.example.com/console",
		Theme: formsvc.Theme{Product: "Rose\r\n& Co", MailFooter: "Main Street 1"},
	})
	w.must(err)
	w.engine, err = delivery.New(store, &delivery.Options{Mail: mails.Mail, Now: w.Now, Retries: []time.Duration{time.Minute}})
	w.must(err)
	in := formsvc.CampaignInput{Title: "Summer camp", Form: formsvc.Form{Enabled: true}, Modules: []formsvc.Module{
		{Name: "meal", Label: "Your <meal>", Type: formsvc.ChoiceModule, Options: []string{"v", "fish"}, Labels: map[string]string{"v": "Vegan"}},
		{Name: "note", Type: formsvc.TextModule}, {Name: "yes", Type: formsvc.BooleanModule}, {Name: "no", Type: formsvc.BooleanModule},
	}}
	if change != nil {
		change(&in)
	}
	w.form, err = w.Campaigns.Create(t.Context(), w.AccountID, in)
	w.must(err)
	return w
}

func (w *mailWorld) must(err error) {
	if w.t.Helper(); err != nil {
		w.t.Fatal(err)
	}
}

// send sends the form, as a visitor does.
func (w *mailWorld) send(email, note string, held formsvc.HoldReason) formsvc.Response {
	w.t.Helper()
	r, err := w.Responses.Create(w.t.Context(), w.form.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: email, FirstName: "Eve http://evil.example"}, FormToken: w.form.FormToken, Held: held,
		Answers: []formsvc.Answer{{Name: "meal", Value: []string{"v"}}, {Name: "note", Value: []string{note}}, {Name: "yes", Value: []string{"true"}}, {Name: "no", Value: []string{"false"}}},
	})
	w.must(err)
	return r
}

// mails sends what is due, and compares the recipients.
func (w *mailWorld) mails(want ...string) []digest.Message {
	w.t.Helper()
	_, err := w.engine.RunOnce(w.t.Context())
	w.must(err)
	var got []string
	list := w.inbox.Mails()
	for _, m := range list {
		got = append(got, m.To)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("mails went to %q, want %q", got, want)
	}
	return list
}

// notice creates an owner's notice that its recipient has confirmed.
func (w *mailWorld) notice(in formsvc.MailInput, events ...formsvc.EventType) formsvc.Webhook {
	w.t.Helper()
	if len(events) == 0 {
		events = []formsvc.EventType{webhook.ResponseCreated}
	}
	_, _, err := w.Webhooks.Create(w.t.Context(), w.AccountID, formsvc.WebhookInput{URL: "MAILTO:owner@example.com", Events: events, Mail: in})
	w.must(err)
	asked := w.mails("owner@example.com")[0]
	_, after, _ := strings.Cut(asked.Text, "https://forms.example.com/f/mail/")
	token, _, _ := strings.Cut(after, "\n")
	hook, err := w.Webhooks.Confirm(w.t.Context(), token)
	if err != nil || hook.Disabled {
		w.t.Fatalf("%+v, %v", hook, err)
	}
	w.Advance(time.Second)
	if again, err := w.Webhooks.Confirm(w.t.Context(), token); err != nil || again.Version != hook.Version {
		w.t.Fatalf("confirmed again: %+v, %v", again, err)
	}
	return hook
}

// answersOf are words of a stranger.
const answersOf = "Buy at http://evil.example <b>now</b>"

func TestConfirmation(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) {
		in.Form.Language, in.EmailOptional, in.TimeZone = "de", true, "America/Sao_Paulo"
		in.Form.Confirmation = formsvc.Confirmation{Enabled: true, Text: "See you & yours.", ReplyTo: "camp@example.com", Answers: true}
	})
	r := w.send("ada@example.com", answersOf, "")
	m := w.mails("ada@example.com")[0]
	if m.Subject != "Rose & Co: Wir haben Ihre Antworten erhalten: Summer camp" || m.ReplyTo != "camp@example.com" || m.Unsubscribe != "" || m.ID == "" {
		t.Errorf("%+v", m)
	}
	for _, want := range []string{"See you & yours.", r.Reference, "01.06.2026, 06:00 UTC-03", "Main Street 1"} {
		if !strings.Contains(m.Text, want) || !strings.Contains(m.HTML, strings.ReplaceAll(want, "&", "&amp;")) {
			t.Errorf("without %q:\n%s\n%s", want, m.Text, m.HTML)
		}
	}
	if all := m.Subject + m.Text + m.HTML; strings.Contains(all, "evil") || strings.Contains(all, "Vegan") {
		t.Errorf("a stranger's words are sent to somebody else:\n%s", all)
	}
	// The address of the owner is known.
	w.notice(formsvc.MailInput{})
	w.send("OWNER@example.com", answersOf, "")
	if list := w.mails("OWNER@example.com", "owner@example.com"); !strings.Contains(list[0].Text, "Your <meal>: Vegan\nnote: "+answersOf+"\nyes: Ja\nno: Nein\n") || !strings.Contains(list[0].HTML, "&lt;b&gt;now") {
		t.Errorf("%s\n%s", list[0].Text, list[0].HTML)
	}
	// Without an address, and over the API, there is none.
	r = w.send("", "x", "")
	w.Response(&w.form)
	w.mails("owner@example.com", "owner@example.com")
	if list, err := w.Deliveries.Mails(t.Context(), r.Key()); err != nil || len(list) != 1 {
		t.Errorf("%d mails about a response without an address, %v", len(list), err)
	}
}

// Numbers and days are written as in the form's language, as its page does, and the mail has its direction.
func TestAnswersAreWritten(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) {
		in.Modules = append(in.Modules, formsvc.Module{Name: "n", Type: formsvc.NumberModule, Multiple: true}, formsvc.Module{Name: "day", Type: formsvc.DateModule})
	})
	w.notice(formsvc.MailInput{})
	for language, want := range map[string]string{
		"de": "n:\n-1234,5\n1,500\n7\n1e-7\nday: 01.03.2026\nw: 2.5 or so\nltr", "en": "n:\n-1234.5\n1.500\n7\n1e-7\nday: 1 March 2026\nw: 2.5 or so\nltr",
		"es": "n:\n-1234.5\n1,5000\n7\n1e-7\nday: 01/03/2026\nw: 2.5 or so\nltr", "ar": "n:\n-1234.5\n1٫500\n7\n1e-7\nday: 2026/03/01\nw: 2.5 or so\nrtl",
		"": "n:\n-1234.5\n1.500\n7\n1e-7\nday: 1 March 2026\nw: 2.5 or so\nltr",
	} {
		in := w.form.CampaignInput
		in.Form.Language, in.Modules = language, append(slices.Clone(in.Modules), formsvc.Module{Name: "w", Type: formsvc.TextModule})
		form, err := w.Campaigns.Replace(t.Context(), w.form.Key(), in)
		w.must(err)
		_, err = w.Responses.Create(t.Context(), form.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}, Answers: []formsvc.Answer{
			{Name: "n", Value: []string{"-1234.5", "1.500", "7", "1e-7"}}, {Name: "day", Value: []string{"2026-03-01"}}, {Name: "w", Value: []string{"2.5 or so"}},
		}})
		w.must(err)
		in.Modules[len(in.Modules)-1].Type = formsvc.NumberModule
		_, err = w.Campaigns.Replace(t.Context(), form.Key(), in)
		w.must(err)
		m := w.mails("owner@example.com")[0]
		rows, dir := want[:len(want)-3], want[len(want)-3:]
		if !strings.Contains(m.Text, rows) || !strings.Contains(m.HTML, "-1234") || !strings.Contains(m.HTML, `dir="`+dir+`"><head>`) || !strings.Contains(m.HTML, "max-width:600px") {
			t.Errorf("%s: without %q:\n%s\n%s", language, want, m.Text, m.HTML)
		}
	}
}

// Held responses send nothing before they are released, and then everything.
func TestHeldResponsesSendNoMail(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) { in.Form.Confirmation.Enabled = true })
	w.notice(formsvc.MailInput{})
	r := w.send("ada@example.com", "x", "honeypot")
	w.mails()
	status := "pending"
	_, err := w.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Status: &status})
	w.must(err)
	if list := w.mails("ada@example.com", "owner@example.com"); list[1].ReplyTo != "" {
		t.Errorf("replies go to %q, which the owner didn't choose", list[1].ReplyTo)
	}
	list, err := w.Deliveries.Mails(t.Context(), r.Key())
	if err != nil || len(list) != 2 {
		t.Fatalf("%d mails about the response, %v", len(list), err)
	}
	for _, want := range [][]string{{"ada@example.com", "owner@example.com"}, {"ada@example.com", "owner@example.com"}, {"owner@example.com"}} {
		for _, d := range list {
			if d.State != formsvc.DeliveryDelivered {
				t.Errorf("%+v", d)
			}
			_, err := w.Deliveries.Redeliver(t.Context(), formsvc.DeliveryKey{AccountID: w.AccountID, ID: d.ID})
			w.must(err)
		}
		w.mails(want...) // at most three to an address that nobody confirmed
	}
}

// An address gets three mails a day, however it is written, and an account sends fifty an hour; those beyond wait.
func TestMailLimits(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) { in.Form.Confirmation.Enabled = true })
	var sent []formsvc.Response
	for range 5 {
		sent = append(sent, w.send("Ada+camp@Example.com", "x", ""), w.send("ada@example.com", "x", ""))
	}
	if _, err := w.engine.RunOnce(t.Context()); err != nil || len(w.inbox.Mails()) != formsvc.DefaultMailsPerAddress {
		t.Fatal("not three mails to one address")
	}
	refused := 0
	for _, r := range sent {
		list, err := w.Deliveries.Mails(t.Context(), r.Key())
		w.must(err)
		if d := list[0]; d.State == formsvc.DeliveryFailed && len(d.Log) == 1 && string(d.Log[0].Answer) == "this address has got 3 mails today" {
			refused++
		}
	}
	if refused != 7 {
		t.Errorf("%d of 7 mails are shown as refused for their number", refused)
	}
	for _, address := range []string{"a.d.a@gmail.com", "ada@googlemail.com", "Ada+x@Gmail.com", "ada@gmail.com"} {
		w.send(address, "x", "")
	}
	if _, err := w.engine.RunOnce(t.Context()); err != nil || len(w.inbox.Mails()) != formsvc.DefaultMailsPerAddress {
		t.Error("not three mails to one mailbox at Gmail")
	}
	w.notice(formsvc.MailInput{})
	for i := range 60 {
		w.send(fmt.Sprintf("visitor%d@example.com", i), "x", "")
	}
	_, err := w.engine.RunOnce(t.Context())
	w.must(err)
	if n := len(w.inbox.Mails()); n != formsvc.DefaultMailsPerHour-6+60 {
		t.Errorf("%d mails after six others in the first hour, want the others and the owner's", n)
	}
	for i := range formsvc.MaxWebhooks - 1 { // strangers don't delay questions, which have as many of their own: one was sent, one waits
		in := formsvc.WebhookInput{URL: fmt.Sprintf("mailto:recipient%d@example.com", i), Events: []formsvc.EventType{webhook.ResponseCreated}}
		hook, _, err := w.Webhooks.Create(t.Context(), w.AccountID, in)
		if i == formsvc.MaxWebhooks-2 {
			_, err = w.Webhooks.Test(t.Context(), formsvc.WebhookKey{AccountID: w.AccountID, ID: hook.ID})
		}
		w.must(err)
	}
	_, err = w.engine.RunOnce(t.Context())
	w.must(err)
	if n := len(w.inbox.Mails()); n != formsvc.DefaultMailsPerHour-1 {
		t.Errorf("%d questions in an hour with as many confirmations", n)
	}
	for range 3 { // waiting isn't failing
		w.Advance(5 * time.Minute)
		w.mails()
	}
	w.Advance(time.Hour)
	_, err = w.engine.RunOnce(t.Context())
	w.must(err)
	if n := len(w.inbox.Mails()); n != 17 {
		t.Errorf("%d mails in the next hour, want the other 17", n)
	}
	w.Advance(24 * time.Hour)
	// On another day, and a mail counts once, however often it is tried.
	w.inbox.Fail(func(*digest.Message) error { return errors.New("connection refused") })
	for range 3 {
		w.send("ada@example.com", "x", "")
	}
	w.mails()
	w.inbox.Fail(nil)
	w.Advance(time.Minute)
	w.mails("ada@example.com", "ada@example.com", "ada@example.com", "owner@example.com", "owner@example.com", "owner@example.com")
}

func TestNotice(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, nil)
	hook := w.notice(formsvc.MailInput{ReplyTo: true}, webhook.KnownEventTypes()...)
	key := formsvc.WebhookKey{AccountID: w.AccountID, ID: hook.ID}
	r := w.send("ada@example.com", "Line 1\nLine 2", "")
	m := w.mails("owner@example.com")[0]
	if m.ReplyTo != "ada@example.com" || !strings.Contains(m.Subject, "Summer camp: new response "+r.Reference) {
		t.Errorf("%+v", m)
	}
	link := fmt.Sprintf("https://forms.example.com/console/campaigns/%s/responses/%s", w.form.ID, r.ID)
	for _, want := range []string{link, "Your <meal>: Vegan\n", "note:\nLine 1\nLine 2\n", "E-mail: ada@example.com"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("without %q:\n%s", want, m.Text)
		}
	}
	status := "validated"
	_, err := w.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{Status: &status})
	w.must(err)
	if m := w.mails("owner@example.com")[0]; !strings.Contains(m.Text, "Status: validated") {
		t.Errorf("%s", m.Text)
	}
	_, err = w.Webhooks.Test(t.Context(), key)
	w.must(err)
	w.must(w.Responses.Delete(t.Context(), r.Key(), nil))
	for _, m := range w.mails("owner@example.com", "owner@example.com") { // of a test and a deleted response
		if m.ReplyTo != "" || strings.Contains(m.Text, "/console/") {
			t.Errorf("to %q: %s", m.ReplyTo, m.Text)
		}
	}
	// One click ends them, and only the recipient can begin again.
	token := strings.TrimPrefix(m.Unsubscribe, "https://forms.example.com/f/mail/")
	hook, err = w.Webhooks.Unsubscribe(t.Context(), token)
	if err != nil || !hook.Disabled || !hook.Mail.ConfirmedAt.IsZero() {
		t.Fatalf("%+v, %v", hook, err)
	}
	w.send("ada@example.com", "x", "")
	w.mails()
	if _, err := w.Webhooks.SetDisabled(t.Context(), key, false); !errors.Is(err, formsvc.ErrUnconfirmed) {
		t.Error(err)
	}
	in := formsvc.WebhookInput{URL: hook.URL, Events: hook.Events}
	if got, err := w.Webhooks.Replace(t.Context(), key, in); err != nil || !got.Disabled {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.Webhooks.Confirm(t.Context(), token); !errors.Is(err, formsvc.ErrNotFound) {
		t.Errorf("a link to unsubscribe confirms: %v", err)
	}
}

// Nobody gets notices without agreeing: not by another address, by the secret, by another webhook's link or by a changed one.
func TestNoticesNeedAgreement(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, nil)
	hook := w.notice(formsvc.MailInput{})
	key := formsvc.WebhookKey{AccountID: w.AccountID, ID: hook.ID}
	before := hook.MailToken(true)
	in := formsvc.WebhookInput{URL: "mailto:victim@example.com", Events: hook.Events}
	hook, err := w.Webhooks.Replace(t.Context(), key, in)
	if err != nil || !hook.Disabled || !hook.Mail.ConfirmedAt.IsZero() {
		t.Fatalf("%+v, %v", hook, err)
	}
	w.send("ada@example.com", answersOf, "")
	m := w.mails("victim@example.com")[0]
	if all := m.Subject + m.Text + m.HTML; strings.Contains(all, "evil") || strings.Contains(all, w.form.Title) {
		t.Errorf("the question has words of the account:\n%s", all)
	}
	other := hook
	other.ID = w.AccountID
	for _, token := range []string{"", "x", before, other.MailToken(true), hook.MailToken(false), hook.MailToken(true)[1:], url.QueryEscape(hook.MailToken(true)) + "A"} {
		if _, err := w.Webhooks.Confirm(t.Context(), token); !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("%q: %v", token, err)
		}
	}
	if _, err := w.Webhooks.Rotate(t.Context(), key, formsvc.Rotation{Secret: "a secret that the account knows"}); !errors.Is(err, formsvc.ErrInvalid) {
		t.Errorf("the secret was set: %v", err)
	}
	in.Secret = "a secret that the account knows"
	if _, err := w.Webhooks.Replace(t.Context(), key, in); !errors.Is(err, formsvc.ErrInvalid) {
		t.Errorf("the secret was set: %v", err)
	}
	http := formsvc.WebhookInput{URL: "https://example.com", Events: hook.Events}
	if _, err := w.Webhooks.Replace(t.Context(), key, http); !errors.Is(err, formsvc.ErrInvalid) {
		t.Errorf("it became one for HTTP: %v", err)
	}
	for range 4 { // asking again is limited
		_, err = w.Webhooks.Test(t.Context(), key)
		w.must(err)
	}
	w.mails("victim@example.com", "victim@example.com")
}

// A day's responses come in one mail, once, and not without any.
func TestDailyNotice(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, nil)
	hook := w.notice(formsvc.MailInput{Daily: true})
	if want := time.Date(2026, 6, 2, 6, 0, 0, 0, time.UTC); !hook.Mail.NextAt.Equal(want) {
		t.Errorf("the first one is due at %v, want %v", hook.Mail.NextAt, want)
	}
	w.send("ada@example.com", "x", "")
	w.send("bob@example.com", "x", "")
	w.send("spam@example.com", "x", "honeypot")
	w.must(w.Webhooks.SendSummaries(t.Context()))
	w.mails()
	w.Set(hook.Mail.NextAt)
	w.send("late@example.com", "x", "") // belongs to the next day
	w.must(w.Webhooks.SendSummaries(t.Context()))
	w.must(w.Webhooks.SendSummaries(t.Context()))
	w.inbox.Fail(func(*digest.Message) error { return errors.New("connection refused") })
	w.mails()
	w.inbox.Fail(nil)
	w.Advance(time.Minute)
	if m := w.mails("owner@example.com")[0]; m.Subject != "Rose & Co: New responses yesterday: 2" || m.Unsubscribe == "" {
		t.Errorf("%+v", m)
	}
	w.Advance(24 * time.Hour)
	w.must(w.Webhooks.SendSummaries(t.Context()))
	if m := w.mails("owner@example.com")[0]; !strings.HasSuffix(m.Subject, "yesterday: 1") {
		t.Errorf("%+v", m)
	}
	w.Advance(24 * time.Hour)
	w.must(w.Webhooks.SendSummaries(t.Context()))
	w.mails()
	// No server ran for days.
	w.Advance(time.Hour)
	w.send("ada@example.com", "x", "")
	w.Advance(24 * time.Hour)
	w.send("bob@example.com", "x", "")
	w.Advance(48 * time.Hour)
	w.must(w.Webhooks.SendSummaries(t.Context()))
	if m := w.mails("owner@example.com")[0]; !strings.HasSuffix(m.Subject, "yesterday: 2") {
		t.Errorf("%+v", m)
	}
}

// A mail that the server refuses for good is not retried; the owner sees the server's words.
func TestRefusedMail(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) { in.Form.Confirmation.Enabled = true })
	for _, c := range []struct {
		err   error
		state formsvc.DeliveryState
		shown string
	}{
		{&delivery.MailError{Code: 550, Text: "no such user", Final: true}, formsvc.DeliveryFailed, "550 no such user"},
		{&delivery.MailError{Code: 451, Text: "try again"}, formsvc.DeliveryPending, "451 try again"},
		{errors.New("connection refused"), formsvc.DeliveryPending, "0 "},
	} {
		w.inbox.Fail(func(*digest.Message) error { return c.err })
		r := w.send("ada@example.com", "x", "")
		w.mails()
		list, err := w.Deliveries.Mails(t.Context(), r.Key())
		if err != nil || len(list) != 1 || len(list[0].Log) != 1 || list[0].State != c.state ||
			fmt.Sprintf("%d %s", list[0].Log[0].Status, list[0].Log[0].Answer) != c.shown {
			t.Errorf("%v: %+v, %v", c.err, list, err)
		}
	}
}

// The webhook of confirmations takes no place of the account's own ones, and nobody can change it.
func TestWebhookOfConfirmations(t *testing.T) {
	t.Parallel()
	w := newMailWorld(t, func(in *formsvc.CampaignInput) { in.Form.Confirmation.Enabled = true })
	in := formsvc.WebhookInput{Events: []formsvc.EventType{webhook.ResponseCreated}}
	for i := range formsvc.MaxWebhooks + 1 {
		in.URL = fmt.Sprintf("https://example.com/%d", i)
		if _, _, err := w.Webhooks.Create(t.Context(), w.AccountID, in); errors.Is(err, formsvc.ErrLimit) != (i == formsvc.MaxWebhooks) {
			t.Fatalf("webhook %d: %v", i+1, err)
		}
	}
	if list, err := w.Webhooks.List(t.Context(), w.AccountID); err != nil || len(list) != formsvc.MaxWebhooks {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	key := formsvc.WebhookKey{AccountID: w.AccountID, ID: w.AccountID}
	hook, err := w.Webhooks.Get(t.Context(), key)
	if err != nil || !hook.ToSubmitters() {
		t.Errorf("%+v, %v", hook, err)
	}
	_, errReplace := w.Webhooks.Replace(t.Context(), key, in)
	_, errDisable := w.Webhooks.SetDisabled(t.Context(), key, true)
	_, errRotate := w.Webhooks.Rotate(t.Context(), key, formsvc.Rotation{})
	_, errTest := w.Webhooks.Test(t.Context(), key)
	for _, err := range []error{errReplace, errDisable, errRotate, errTest, w.Webhooks.Delete(t.Context(), key)} {
		if !errors.Is(err, formsvc.ErrNotFound) {
			t.Errorf("it was changed: %v", err)
		}
	}
}
