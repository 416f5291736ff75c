package mailer

import (
	"mime"
	"net/mail"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc/digest"
)

// mailTo returns a mailer for a server with a login.
func mailTo(t testing.TB, s *server, scheme, login, query string) *Mailer {
	t.Helper()
	m, err := New(scheme+"://"+login+s.addr+query, "Forms <forms@example.com>")
	if err != nil {
		t.Fatal(err)
	}
	m.roots = s.Roots()
	return m
}

// Mail arrives over each kind of connection, and required TLS is enforced.
func TestMailArrives(t *testing.T) {
	t.Parallel()
	login := serverOptions{User: "forms", Password: "p@ss:word"}
	with := func(o serverOptions, change func(*serverOptions)) serverOptions {
		change(&o)
		return o
	}
	startTLS := with(login, func(o *serverOptions) { o.StartTLS = true })
	for _, x := range []struct {
		label, scheme, login, query string
		server                      serverOptions
		secure                      bool
	}{
		{"plain", "smtp", "", "?starttls=off", serverOptions{}, false},
		{"STARTTLS not offered and optional", "smtp", "", "?starttls=optional", serverOptions{}, false},
		{"STARTTLS offered and optional", "smtp", "forms:p%40ss:word@", "?starttls=optional", startTLS, true},
		{"STARTTLS", "smtp", "forms:p%40ss:word@", "", startTLS, true},
		{"TLS", "smtps", "forms:p%40ss:word@", "", with(login, func(o *serverOptions) { o.TLS = true }), true},
		{"no answer to the goodbye", "smtp", "", "?starttls=off", serverOptions{MuteAfter: "queued"}, false},
		{"login on this machine", "smtp", "forms:p%40ss:word@", "?starttls=off", login, false},
	} {
		t.Run(x.label, func(t *testing.T) {
			t.Parallel()
			s := serve(t, x.server)
			m := mailTo(t, s, x.scheme, x.login, x.query)
			if x.server.MuteAfter != "" {
				m.timeout = 300 * time.Millisecond
			}
			if err := m.Send(t.Context(), digest.Message{To: "ada@example.com", Subject: "Süß\r\nBcc: eve@example.com", Text: "Text – with Ümlauts\n.\n"}); err != nil {
				t.Fatal(err)
			}
			got := s.Mails()
			if len(got) != 1 || got[0].TLS != x.secure || got[0].User != x.server.User ||
				got[0].From != "forms@example.com" || strings.Join(got[0].To, ",") != "ada@example.com" {
				t.Fatalf("the server got %+v", got)
			}
			checkMail(t, got[0].Text)
			closed(t, s)
		})
	}
}

// checkMail checks the headers of a mail whose subject tried to inject one.
func checkMail(t testing.TB, text string) {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "Süß") || msg.Header.Get("Bcc") != "" {
		t.Errorf("subject %q (%v), Bcc %q", subject, err, msg.Header.Get("Bcc"))
	}
	for name, want := range map[string]string{
		"From": `"Forms" <forms@example.com>`, "To": "<ada@example.com>", "Auto-Submitted": "auto-generated", "User-Agent": "",
	} {
		if got := msg.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"Date", "Message-Id"} {
		if msg.Header.Get(name) == "" {
			t.Errorf("%s is missing:\n%s", name, text)
		}
	}
}

// closed waits until the client has closed its connections.
func closed(t testing.TB, s *server) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); s.Connections() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d connections stay open", s.Connections())
		}
	}
}

// A server that refuses, lies or hangs causes an error in time, sends no mail and leaves no connection open.
func TestMailFails(t *testing.T) {
	t.Parallel()
	login := serverOptions{User: "forms", Password: "right", StartTLS: true}
	for _, x := range []struct {
		label, scheme, login, to string
		server                   serverOptions
		distrust                 bool
	}{
		{"wrong password", "smtp", "forms:wrong@", "ada@example.com", login, false},
		{"no login", "smtp", "", "ada@example.com", login, false},
		{"no STARTTLS", "smtp", "forms:right@", "ada@example.com", serverOptions{User: "forms", Password: "right"}, false},
		{"no login offered", "smtp", "forms:right@", "ada@example.com", serverOptions{StartTLS: true}, false},
		{"unknown certificate", "smtp", "forms:right@", "ada@example.com", login, true},
		{"unknown certificate, TLS", "smtps", "", "ada@example.com", serverOptions{TLS: true}, true},
		{"TLS to a server without", "smtps", "", "ada@example.com", serverOptions{}, false},
		{"unknown mailbox", "smtp", "", "nobody@example.com", serverOptions{StartTLS: true, Refuse: []string{"nobody@example.com"}}, false},
		{"two addresses", "smtp", "", "ada@example.com, eve@example.com", serverOptions{StartTLS: true}, false},
		{"no address", "smtp", "", "ada@example.com\r\nRCPT TO:<eve@example.com>", serverOptions{StartTLS: true}, false},
		{"hangs at once", "smtp", "", "ada@example.com", serverOptions{StartTLS: true, Mute: true}, false},
		{"hangs after the greeting", "smtp", "", "ada@example.com", serverOptions{StartTLS: true, MuteAfter: "220"}, false},
		{"hangs in TLS", "smtps", "", "ada@example.com", serverOptions{TLS: true, Mute: true}, false},
	} {
		t.Run(x.label, func(t *testing.T) {
			t.Parallel()
			s := serve(t, x.server)
			m := mailTo(t, s, x.scheme, x.login, "")
			if x.server.Mute || x.server.MuteAfter != "" || x.scheme == "smtps" {
				m.timeout = 300 * time.Millisecond
			}
			if x.distrust {
				m.roots = nil
			}
			err := m.Send(t.Context(), digest.Message{To: x.to, Subject: "Subject", Text: "Text"})
			if got := s.Mails(); err == nil || len(got) != 0 {
				t.Errorf("error %v, %d mails", err, len(got))
			} else if strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), "wrong") {
				t.Errorf("the error tells the password: %v", err)
			}
			closed(t, s)
		})
	}
}

// A password is not sent unencrypted to another machine.
func TestMailKeepsPasswordWithoutTLS(t *testing.T) {
	t.Parallel()
	s := serve(t, serverOptions{User: "forms", Password: "right"})
	m := mailTo(t, s, "smtp", "forms:right@", "?starttls=off")
	m.host = "::ffff:127.0.0.1" // this machine, but not recognizable as such
	err := m.Send(t.Context(), digest.Message{To: "ada@example.com", Subject: "Subject", Text: "Text"})
	if err == nil || !strings.Contains(err.Error(), "unencrypted") || len(s.Mails()) != 0 {
		t.Errorf("error %v, %d mails", err, len(s.Mails()))
	}
}

func TestMailAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                   "must be smtp://",
		"mail.example.com":                   "must be smtp://",
		"mail.example.com:25":                "must be smtp://",
		"http://mail.example.com":            "the scheme",
		"smtp://":                            "must be smtp://",
		"smtp://mail.example.com:0":          "the port",
		"smtp://mail.example.com:70000":      "the port",
		"smtp://secret@mail.example.com":     "set both a user name and a password",
		"smtp://:secret@mail.example.com":    "a user name",
		"smtp://mail.example.com/secret":     "must be smtp://",
		"smtp://u:secret%zz@mail.example":    "must be smtp://",
		"smtp://mail.example.com?tls=secret": `"tls"`,
		"smtp://mail.example.com?starttls=x": "starttls must be",
		"smtps://mail.example.com?starttls=": `"starttls"`,
	} {
		if _, err := New(address, "a@example.com"); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "--smtp") {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	for _, from := range []string{"", "example.com", "a@example.com\r\nBcc: b@example.com"} {
		if _, err := New("smtp://mail.example.com", from); err == nil || !strings.Contains(err.Error(), "--mail-from") {
			t.Errorf("from %q: %v", from, err)
		}
	}
}
