package mailer

import (
	"fmt"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A mail that a server doesn't take is retried unless the address is refused, and the delivery has the server's words or what went wrong.
func TestRepliesBesideDeliveries(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		server serverOptions
		want   string
	}{
		{serverOptions{Instead: "220", Say: "421 4.3.2 Too busy\r\n"}, "pending mail 421 421 4.3.2 Too busy"},
		{serverOptions{Instead: "220", Say: "554 Go away\r\n"}, "pending mail 554 554 Go away"},
		{serverOptions{Instead: "220"}, "pending reset 0 "},
		{serverOptions{Mute: true}, "pending timeout 0 "},
		{serverOptions{Instead: "Hello"}, "pending reset 0 "},
		{serverOptions{Instead: "accepting mail", Say: "421 Closing\r\n"}, "pending mail 421 421 Closing"},
		{serverOptions{Instead: "make sure", Say: "451 Greylisted\r\n"}, "pending mail 451 451 Greylisted"},
		{serverOptions{Instead: "make sure", Say: "550 No <ada@example.com>\r\n"}, "failed mail 550 550 No <the recipient>"},
		{serverOptions{Instead: "354"}, "pending reset 0 "},
		{serverOptions{MuteAfter: "354"}, "pending timeout 0 "},
		{serverOptions{Instead: "queued", Say: "554 Spam\r\n"}, "pending mail 554 554 Spam"},
		{serverOptions{Instead: "queued"}, "pending reset 0 "},
	} {
		t.Run(x.want, func(t *testing.T) {
			t.Parallel()
			m := mailTo(t, serve(t, x.server), "smtp", "", "?starttls=off")
			if x.server.Instead == "" {
				m.timeout = 300 * time.Millisecond
			}
			store := memory.New()
			s := formsvctest.New(t, &formsvctest.Options{Store: store})
			mails, _ := digest.NewMailer(s.Service, m, nil)
			engine, _ := delivery.New(store, &delivery.Options{Mail: mails.Mail, Now: s.Now})
			form, err := s.Campaigns.Create(t.Context(), s.AccountID, formsvc.CampaignInput{
				Title: "Form", Form: formsvc.Form{Enabled: true, Confirmation: formsvc.Confirmation{Enabled: true}},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Responses.Create(t.Context(), form.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}, FormToken: form.FormToken})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = engine.RunOnce(t.Context())
			list, err := s.Deliveries.Mails(t.Context(), r.Key())
			if err != nil || len(list) != 1 || len(list[0].Log) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			last := list[0].Log[0]
			if got := fmt.Sprintf("%s %s %d %s", list[0].State, last.Error, last.Status, last.Answer); got != x.want {
				t.Errorf("%q, want %q", got, x.want)
			}
		})
	}
}
