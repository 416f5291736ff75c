package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// A mailServer requires a login and keeps the mails that it gets. It is safe for concurrent use.
type mailServer struct {
	addr  string
	mu    sync.Mutex
	mails []string
}

func serveMail(t testing.TB) *mailServer {
	t.Helper()
	l := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	m := &mailServer{addr: l.Addr().String()}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{mailServer: m}, nil }))
	server.AllowInsecureAuth = true
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return m
}

func (m *mailServer) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mails)
}

type mailSession struct {
	*mailServer
	user string
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != "forms:mail-password" {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if s.user == "" {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, strings.ReplaceAll(string(text), "=\r\n", ""))
	return err
}

func (*mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*mailSession) Reset()                               {}
func (*mailSession) Logout() error                        { return nil }

// Failed deliveries are logged and mailed once to the account's contact, and sign-in links are mailed. No log has secrets.
func TestServeMails(t *testing.T) {
	t.Parallel()
	mails := serveMail(t)
	sh := newShell(t)
	sh.env = environment{"FORMSVC_SMTP=smtp://forms:mail-password@" + mails.addr + "?starttls=off", "FORMSVC_MAIL_FROM=Forms <forms@example.com>"}
	s := sh.serve(t, "--webhook-retries", "10ms,10ms,10ms")
	s.do(t, "accounts", "contact", "default", "ops@example.com")
	r := receive(t)
	r.AnswerAlways(webhooktest.Reply{Status: 503})
	uuid := s.hook(t, r.URL()+"/path-token", "response.created")
	s.submit(t, s.campaign(t))
	until(t, "a mail arrives", func() bool { return len(mails.list()) > 0 })
	equal(t, len(arrived(t, r, 4)), 4, "%d attempts")
	text := mails.list()[0]
	contains(t, "the mail", text, "To: <ops@example.com>", "status 503", "webhooks deliveries "+uuid, "webhooks redeliver "+uuid, strings.TrimPrefix(r.URL(), "http://"))
	line := s.log.wait(t.Context(), `\{[^\n]*"msg":"webhook delivery failed permanently"[^\n]*\}`)[0]
	var failure struct {
		Webhook, Event, Error string
		Attempts, Status      int
	}
	if err := json.Unmarshal([]byte(line), &failure); err != nil || failure.Webhook != uuid || failure.Attempts != 4 || failure.Status != 503 || failure.Error != "status" {
		t.Errorf("logged as %s (%v)", line, err)
	}

	// The mailed link needs a public address.
	s.stop()
	s = sh.serve(t, "--base-url", s.url)
	browser := new(http.Client)
	browser.Jar, _ = cookiejar.New(nil)
	posted(t, browser, s.url+"/console/sign-in", s.url+"/console/sign-in/mail", url.Values{"email": {"ops@example.com"}})
	until(t, "the link is mailed", func() bool { return len(mails.list()) == 2 })
	contains(t, "the second mail", mails.list()[1], "/console/sign-in/", "This link signs you in once")
	lacks(t, "the log and the mail", s.log.String()+line+text, "mail-password", "path-token", testSecret, "/sign-in/")
}

// A form's confirmations and an owner's notices go out by mail, within their limits.
func TestServeConfirms(t *testing.T) {
	t.Parallel()
	mails := serveMail(t)
	sh := newShell(t)
	sh.env = environment{"FORMSVC_SMTP=smtp://forms:mail-password@" + mails.addr + "?starttls=off", "FORMSVC_MAIL_FROM=Forms <forms@example.com>"}
	s := sh.serve(t, "--mails-per-address", "1", "--mails-per-hour", "3")
	out := s.do(t, "webhooks", "create", "--url", "mailto:owner@example.com", "--events", "response.created", "--reply-to", "--json")
	lacks(t, "what the command prints", out, "secret")
	contains(t, "what the command prints", out, `"mail":{"daily":false,"replyTo":true`)
	until(t, "the question arrives", func() bool { return len(mails.list()) == 1 })
	link := regexp.MustCompile(`http://\S+/f/mail/(?:[\w-]|=\r\n)+`).FindString(mails.list()[0])
	link = strings.NewReplacer("=\r\n", "").Replace(link)
	resp := must(http.Post(link, "application/x-www-form-urlencoded", nil))
	_ = resp.Body.Close()
	equal(t, resp.StatusCode, http.StatusOK, "%d")
	form := s.call(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", map[string]any{
		"title": "Camp", "form": map[string]any{"enabled": true, "confirmation": map[string]any{"enabled": true}},
	})
	address := regexp.MustCompile(`http://[^"]+/f/\w+`).FindString(form)
	for _, to := range []string{"ada@example.com", "ada@example.com", "bob@example.com", "eve@example.com"} {
		resp := must(http.PostForm(address, url.Values{"email": {to}}))
		_ = resp.Body.Close()
	}
	// The question counts as well: one more mail to a visitor waits for the next hour.
	until(t, "4 notices and 2 confirmations", func() bool { return len(mails.list()) >= 1+4+2 })
	equal(t, strings.Count(strings.Join(mails.list(), ""), "\nTo: <ada@example.com>"), 1, "%d to one address")
	contains(t, "a daily one", s.do(t, "webhooks", "create", "--url", "mailto:owner@example.com", "--events", "all", "--daily", "--json"), `"mail":{"daily":true,"replyTo":false`)
}
