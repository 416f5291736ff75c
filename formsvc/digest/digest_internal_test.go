package digest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A digestWorld is a store with failing webhooks and a clock that the test sets.
type digestWorld struct {
	t       *testing.T
	now     time.Time
	store   *memory.Store
	svc     *formsvc.Service
	account formsvc.ID
	log     bytes.Buffer
	mails   []string // addresses and subjects
	failing error    // the result of sending
	send    func(ctx context.Context, to, subject, text string) error
	*Digester
}

func newDigestWorld(t *testing.T) *digestWorld {
	t.Helper()
	w := &digestWorld{t: t, now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), store: memory.New()}
	w.svc = must(formsvc.New(w.store, &formsvc.Options{Now: func() time.Time { return w.now }}))
	w.account = must(w.svc.Accounts.Create(t.Context(), "Acme")).ID
	must(w.svc.Accounts.SetContact(t.Context(), w.account, "ops@example.com"))
	w.Digester = New(w.svc.Notices, w, &Options{Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
	w.send = func(_ context.Context, to, subject, _ string) error {
		if w.failing == nil {
			w.mails = append(w.mails, to+": "+subject)
		}
		return w.failing
	}
	return w
}

func (w *digestWorld) Send(ctx context.Context, m Message) error {
	return w.send(ctx, m.To, m.Subject, m.Text)
}

// hook creates a webhook.
func (w *digestWorld) hook(host string) {
	in := formsvc.WebhookInput{URL: "https://" + host + "/token", Events: webhook.EventTypes()}
	if _, _, err := w.svc.Webhooks.Create(w.t.Context(), w.account, in); err != nil {
		w.t.Fatal(err)
	}
}

// fail lets a delivery of each webhook fail permanently.
func (w *digestWorld) fail() {
	ctx := w.t.Context()
	c := must(w.svc.Campaigns.Create(ctx, w.account, formsvc.CampaignInput{Title: "Digest"}))
	must(w.svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}}))
	req := delivery.ClaimRequest{Now: w.now, Lease: time.Minute}
	for _, e := range must(w.store.Ready(ctx, w.now)) {
		req.Shares = append(req.Shares, delivery.Share{Endpoint: e.ID, N: 100})
	}
	var outcomes []delivery.Outcome
	for _, c := range must(w.store.Claim(ctx, req)) {
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Failed,
			Attempt: delivery.Attempt{Number: 1, StartedAt: w.now, Status: 500, Error: delivery.ClassStatus},
		})
	}
	must(w.store.Finish(ctx, outcomes))
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// after advances the clock, runs a round and compares its mails.
func (w *digestWorld) after(d time.Duration, want ...string) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.mails = nil
	w.round(w.t.Context())
	if strings.Join(w.mails, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("at %v mails were %q, want %q", w.now.Format(time.TimeOnly), w.mails, want)
	}
}

// Each webhook gets one mail an hour, however many failures there are. A mail that can't be sent is sent after its lease,
// and no failure is left out.
func TestDigests(t *testing.T) {
	t.Parallel()
	w := newDigestWorld(t)
	w.hook("one.example.com")
	w.after(0)
	w.fail()
	w.fail()
	w.after(time.Second, "ops@example.com: 2 deliveries to one.example.com failed")
	w.fail()
	w.after(58 * time.Minute)
	w.after(3*time.Minute, "ops@example.com: 1 delivery to one.example.com failed")

	w.fail()
	w.failing = errors.New("connection refused")
	w.after(2 * time.Hour)
	if !strings.Contains(w.log.String(), "connection refused") {
		t.Errorf("the log does not say why there was no mail:\n%s", w.log.String())
	}
	w.failing = nil
	w.after(4 * time.Minute)
	w.fail()
	w.after(2*time.Minute, "ops@example.com: 2 deliveries to one.example.com failed")
	w.after(3 * time.Hour)

	// Without a contact a failing webhook is logged once an hour.
	must(w.svc.Accounts.SetContact(t.Context(), w.account, ""))
	for range 3 {
		w.fail()
		w.after(time.Second)
	}
	if n := strings.Count(w.log.String(), "no contact"); n != 1 {
		t.Errorf("the log tells it %d times:\n%s", n, w.log.String())
	}
}

// A round sends more digests than one batch, and a rejected address doesn't block the others.
func TestManyDigests(t *testing.T) {
	t.Parallel()
	w := newDigestWorld(t)
	for i := range batch + 3 {
		w.hook(fmt.Sprintf("host%d.example.com", i))
	}
	w.fail()
	w.send = func(_ context.Context, _, subject, _ string) error {
		if strings.Contains(subject, "host2.") {
			return errors.New("no such mailbox")
		}
		w.mails = append(w.mails, subject)
		return nil
	}
	w.round(t.Context())
	if len(w.mails) != batch+2 {
		t.Errorf("%d mails, want %d", len(w.mails), batch+2)
	}
}

// A mail about a failure is sent within about a second, not in the next regular round.
func TestDigestIsSentSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newDigestWorld(t)
		w.hook("one.example.com")
		ctx, cancel := context.WithCancel(t.Context())
		sent := make(chan time.Time, 1)
		w.send = func(context.Context, string, string, string) error { sent <- time.Now(); return nil }
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(10 * time.Second)
		w.fail()
		begin := time.Now()
		w.Wake()
		w.Wake() // it never waits
		if took := (<-sent).Sub(begin); took > pause {
			t.Errorf("a mail was sent %v after the failure", took)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A mail that is being sent when the server stops is finished and recorded.
func TestShutdownFinishesDigest(t *testing.T) {
	t.Parallel()
	w := newDigestWorld(t)
	w.hook("one.example.com")
	w.hook("two.example.com")
	w.fail()
	ctx, cancel := context.WithCancel(t.Context())
	w.send = func(ctx context.Context, to, _, _ string) error {
		cancel()
		w.mails = append(w.mails, to)
		return ctx.Err() // of the mail
	}
	if err := w.Run(ctx); err != nil || len(w.mails) != 1 {
		t.Errorf("%v, %d mails, want one that was begun", err, len(w.mails))
	}
	w.now = w.now.Add(10 * time.Minute)
	w.round(t.Context())
	if len(w.mails) != 2 {
		t.Errorf("%d mails in all, want one for each webhook", len(w.mails))
	}
}

// The mail names only the host of the URL, and says what to do.
func TestDigestMail(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 30, 0, 123e6, time.UTC)
	d := &formsvc.Digest{
		AccountID: "account-uuid", WebhookID: "webhook-uuid", URL: "https://example.com:8443/token?key=secret", Failures: 3,
		FirstAt: at, LastAt: at.Add(time.Hour), Status: 503, Error: "status",
	}
	subject, text := Compose(d)
	if subject != "3 deliveries to example.com:8443 failed" {
		t.Errorf("the subject is %q", subject)
	}
	for _, want := range []string{
		"Since 2026-11-21T08:30:00Z, 3 deliveries", "2026-11-21T09:30:00Z", "status 503",
		"webhook-uuid", "account-uuid",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not have %q:\n%s", want, text)
		}
	}
	d.Status, d.Error, d.Failures, d.URL = 0, "timeout", 1, ""
	subject, last := Compose(d)
	if !strings.Contains(last, "no response: timeout") || !strings.HasPrefix(subject, "1 delivery to an unknown host") {
		t.Errorf("%s\n%s", subject, last)
	}
	for _, token := range []string{"token", "secret"} {
		if strings.Contains(text+subject, token) {
			t.Errorf("the mail tells %q", token)
		}
	}
}

// A theme's name is before the subject, in one line, and its footer ends the text.
func TestThemedMail(t *testing.T) {
	t.Parallel()
	d := &formsvc.Digest{URL: "https://example.com", Failures: 3}
	plainSubject, plainText := Compose(d)
	for _, c := range []struct {
		theme         formsvc.Theme
		subject, text string
	}{
		{formsvc.Theme{}, plainSubject, plainText},
		{formsvc.Theme{Product: "Rose &\r\nBcc: x", MailFooter: "Rose & Co\nMain Street 1\n\n"}, "Rose & Bcc: x: " + plainSubject, plainText + "\nRose & Co\nMain Street 1\n"},
	} {
		if subject, text := Themed(c.theme)(d); subject != c.subject || text != c.text {
			t.Errorf("%q %q, want %q %q", subject, text, c.subject, c.text)
		}
	}
}
