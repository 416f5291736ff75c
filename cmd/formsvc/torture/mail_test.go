package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
	goclient "github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A post office accepts mail, except that it defers one in 16 at first.
type postOffice struct {
	mu       sync.Mutex
	accepted map[string]int // by Message-ID
	link     string         // the path at which the owner confirms
}

func (*postOffice) Mail(string, *smtp.MailOptions) error { return nil }
func (*postOffice) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*postOffice) Reset()                               {}
func (*postOffice) Logout() error                        { return nil }

// Data counts a mail.
func (o *postOffice) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err // the sender was killed before it had sent everything
	}
	msg := must(mail.ReadMessage(strings.NewReader(string(text))))
	id := strings.Trim(msg.Header.Get("Message-Id"), "<>")
	o.mu.Lock()
	defer o.mu.Unlock()
	if n, seen := o.accepted[id]; !seen && n == 0 && hash([]byte(id))[0] == '0' {
		o.accepted[id] = 0
		return &smtp.SMTPError{Code: 451, Message: "Try again"}
	}
	o.accepted[id]++
	if o.link == "" {
		o.link = regexp.MustCompile(`/f/mail/[\w-]+`).FindString(strings.ReplaceAll(string(text), "=\r\n", ""))
	}
	return nil
}

// has reports whether a mail was accepted, and returns the path of the link to confirm.
func (o *postOffice) has(id formsvc.ID) (accepted bool, link string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accepted[string(id)+"@example.com"] > 0, o.link
}

// Nodes are killed, and links to the mail server fail in every way, while visitors send a form. Each mail of an
// acknowledged response is accepted at least once, and again only for what was in flight at a fault.
func TestKillMail(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { mailing(t, 1, sqliteDSN(t)) })
	t.Run("postgres", func(t *testing.T) { mailing(t, 2, postgrestest.DSN(t)) })
}

func mailing(t *testing.T, nodes int, dsn string) {
	t.Helper()
	office := &postOffice{accepted: make(map[string]int)}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return office, nil }))
	server.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	l, near := newLink(t, "smtp://"+listener.Addr().String())
	w := newWorld(t, nodes, setup{dsn: dsn})
	w.flags = append(w.flags[:len(w.flags):len(w.flags)], "--smtp", near+"?starttls=off", "--mail-from", "forms@example.com",
		"--mails-per-hour", "0", "--mails-per-address", "0")
	w.startAll()
	api := w.client.api(w.nodes[0].url)
	form := must(api.Campaigns.Create(t.Context(), goclient.CampaignInput{
		Title: "Mails", Form: goclient.Form{Form: formsvc.Form{Enabled: true, Confirmation: formsvc.Confirmation{Enabled: true}}},
	})).Form.Token
	notice := must(api.Webhooks.Create(t.Context(), goclient.WebhookInput{URL: "mailto:owner@example.com", Events: []formsvc.EventType{"response.created"}}))
	waitFor(t, "the question is mailed", func() bool { _, link := office.has(""); return link != "" })
	resp := must(http.Post(w.nodes[0].url+office.link, "application/x-www-form-urlencoded", nil))
	_ = resp.Body.Close()
	w.limit = rate.NewLimiter(50, clients)
	for i := range clients {
		w.workers.Go(func() {
			for n := 0; !w.stopped.Load(); n++ {
				w.visit(form, fmt.Sprintf("v%d-%d@example.com", i, n))
			}
		})
	}
	faults := 0
	for n := range rounds(9) {
		w.more(10)
		time.Sleep(rand.N(500 * time.Millisecond))
		i := rand.IntN(nodes)
		w.kill(i)
		w.start(i)
		w.more(10)
		l.disturb(n, 100*time.Millisecond+rand.N(400*time.Millisecond))
		faults += 2
	}
	w.stop()
	account := formsvc.ID(must(w.client.api(w.nodes[0].url).Me(t.Context())).Account.UUID)
	waitFor(t, "the events are listed", func() bool {
		events, err := list[json.RawMessage](t.Context(), w.client, w.nodes[0].url+"/v1/events")
		return err == nil && len(events) >= int(w.acked.Load())
	})
	for _, raw := range must(list[json.RawMessage](t.Context(), w.client, w.nodes[0].url+"/v1/events")) {
		id, _, err := readEvent(raw)
		noError(t, err)
		for _, hook := range []formsvc.ID{account, formsvc.ID(notice.UUID)} { // the confirmation's webhook has the account's identifier
			mail := formsvc.DeliveryID(formsvc.ID(id), hook)
			waitFor(t, "mail "+string(mail)+" arrives", func() bool { accepted, _ := office.has(mail); return accepted })
		}
	}
	for _, p := range w.nodes {
		p.terminate(t)
	}
	again, most := 0, 0
	for _, n := range office.accepted {
		again, most = again+max(0, n-1), max(most, n)
	}
	t.Logf("%d mails, %d accepted again in %d faults, one %d times", len(office.accepted), again, faults, most)
	// A fault can hit what is sent and what was accepted but isn't recorded yet: at most the window of each of both webhooks.
	if limit := faults * 2 * delivery.DefaultPerEndpoint; again > limit || most > 1+faults {
		t.Errorf("%d mails were accepted again, want at most %d", again, limit)
	}
}

// visit sends a form.
func (w *world) visit(form, email string) {
	ctx := context.Background() // what was sent is finished
	_ = w.limit.Wait(ctx)
	header := map[string]string{"X-Forwarded-For": fmt.Sprintf("10.%d.%d.%d", rand.N(256), rand.N(256), rand.N(256))}
	a, _ := w.client.do(ctx, http.MethodPost, w.target()+"/f/"+form, fmt.Appendf(nil, `{"user":{"email":%q},"responses":{}}`, email), header)
	switch {
	case a.status == http.StatusCreated:
		w.acked.Add(1)
		return
	case a.status >= 400 && a.status < 500:
		w.t.Errorf("the form was answered with %d: %.300s", a.status, a.body)
	}
	time.Sleep(10 * time.Millisecond) // so that it does not spin while no node runs
}
