package mailer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// scripted starts a mail server that accepts everything until a command, or "." for the content or "" for the greeting: then it replies
// with the text, closes the connection for "close", or says nothing more for "". It returns the server's address.
func scripted(t *testing.T, command, reply string) string {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		lines := bufio.NewReader(conn)
		for name, usual := "", "220 ready"; ; {
			switch {
			case name != command:
				_, _ = io.WriteString(conn, usual+"\r\n")
			case reply == "":
				_, _ = io.Copy(io.Discard, lines)
				return
			case reply == "close":
				return
			default:
				_, _ = io.WriteString(conn, reply+"\r\n")
			}
			end := "\n"
			if usual == "354 go on" {
				end = "\r\n.\r\n"
			}
			var text strings.Builder
			for !strings.HasSuffix(text.String(), end) {
				c, err := lines.ReadByte()
				if err != nil {
					return
				}
				text.WriteByte(c)
			}
			if name, usual = strings.ToUpper(text.String()[:4]), "250 done"; end != "\n" {
				name = "."
			} else if name == "DATA" && name != command {
				usual = "354 go on"
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// A mail that a server doesn't take is retried unless the address is refused, and the delivery has the server's words or what went wrong.
func TestRepliesBesideDeliveries(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ command, reply, want string }{
		{"", "421 4.3.2 Too busy", "pending mail 421 421 4.3.2 Too busy"},
		{"", "554 Go away", "pending mail 554 554 Go away"},
		{"", "close", "pending reset 0 "},
		{"", "", "pending timeout 0 "},
		{"EHLO", "close", "pending reset 0 "},
		{"MAIL", "421 Closing", "pending mail 421 421 Closing"},
		{"MAIL", "", "pending timeout 0 "},
		{"RCPT", "451 Greylisted", "pending mail 451 451 Greylisted"},
		{"RCPT", "550 No such mailbox <ada@example.com>", "failed mail 550 550 No such mailbox <the recipient>"},
		{"DATA", "452 Disk full", "pending mail 452 452 Disk full"},
		{"DATA", "close", "pending reset 0 "},
		{".", "554 Spam", "pending mail 554 554 Spam"},
		{".", "close", "pending reset 0 "},
		{".", "", "pending timeout 0 "},
	} {
		t.Run(x.command+" "+x.reply, func(t *testing.T) {
			t.Parallel()
			m, err := New("smtp://"+scripted(t, x.command, x.reply)+"?starttls=off", "forms@example.com")
			if err != nil {
				t.Fatal(err)
			}
			if m.timeout = time.Minute; x.reply == "" {
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
			if _, err := engine.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
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
