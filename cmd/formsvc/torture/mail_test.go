package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"mime"
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

// A post office accepts mail, except that it defers some at first. It shares no code with the sender.
type postOffice struct {
	mu       sync.Mutex
	accepted map[string]int  // by Message-ID
	about    map[string]bool // recipient, and the reference in the subject of a notice
	question string          // the path of the link to confirm
}

var confirmPattern = regexp.MustCompile(`/f/mail/[\w-]+`)

const owner = "owner@example.com"

// newPostOffice starts a post office, which ends with the test, and returns its address.
func newPostOffice(t testing.TB) (o *postOffice, addr string) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	o = &postOffice{accepted: make(map[string]int), about: make(map[string]bool)}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return o, nil }))
	server.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return o, l.Addr().String()
}

func (*postOffice) Mail(string, *smtp.MailOptions) error { return nil }
func (*postOffice) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*postOffice) Reset()                               {}
func (*postOffice) Logout() error                        { return nil }

// Data counts a mail.
func (o *postOffice) Data(r io.Reader) error {
	msg, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(msg.Body)
	if err != nil {
		return err // the sender was killed before it had sent everything
	}
	id, to := msg.Header.Get("Message-Id"), strings.Trim(msg.Header.Get("To"), "<>")
	subject, _ := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	o.mu.Lock()
	defer o.mu.Unlock()
	if n, seen := o.accepted[id]; !seen && n == 0 && hash([]byte(id))[0] == '0' {
		o.accepted[id] = 0
		return &smtp.SMTPError{Code: 451, Message: "Try again"}
	}
	o.accepted[id]++
	if o.question == "" {
		o.question = confirmPattern.FindString(strings.ReplaceAll(string(body), "=\r\n", ""))
	}
	if to == owner {
		to += subject[strings.LastIndex(subject, " "):]
	}
	o.about[to] = true
	return nil
}

// link returns the path of the link to confirm.
func (o *postOffice) link() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.question
}

// missing returns how many of the mails have not arrived.
func (o *postOffice) missing(want []string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, about := range want {
		if !o.about[about] {
			n++
		}
	}
	return n
}

// Nodes are killed, and links to the mail server fail in every way, while visitors send a form. Each mail of an
// acknowledged response is accepted at least once, and again only for what was in flight at a fault.
func TestKillMail(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { mailing(t, 1, sqliteDSN(t)) })
	t.Run("postgres", func(t *testing.T) { mailing(t, 2, postgrestest.DSN(t)) })
}

func mailing(t *testing.T, nodes int, dsn string) {
	t.Helper()
	office, addr := newPostOffice(t)
	l, near := newLink(t, "smtp://"+addr)
	w := newWorld(t, nodes, setup{dsn: dsn})
	w.flags = append(w.flags[:len(w.flags):len(w.flags)], "--smtp", near+"?starttls=off", "--mail-from", "forms@example.com",
		"--mails-per-hour", "0", "--mails-per-address", "0")
	w.startAll()
	form := must(w.client.api(w.nodes[0].url).Campaigns.Create(t.Context(), goclient.CampaignInput{
		Title: "Mails", Form: goclient.Form{Form: formsvc.Form{Enabled: true, Confirmation: formsvc.Confirmation{Enabled: true}}},
	})).Form.Token
	w.command(t, "webhooks", "create", "--url", "mailto:"+owner, "--events", "response.created")
	waitFor(t, "the question is mailed", func() bool { return office.link() != "" })
	resp := must(http.Post(w.nodes[0].url+office.link(), "application/x-www-form-urlencoded", nil))
	_ = resp.Body.Close()
	w.limit = rate.NewLimiter(50, clients)
	var want []string // the mails of acknowledged responses
	for i := range clients {
		w.workers.Go(func() {
			for n := 0; !w.stopped.Load(); n++ {
				if sent := w.visit(form, fmt.Sprintf("v%d-%d@example.com", i, n)); sent != nil {
					office.mu.Lock()
					want = append(want, sent...)
					office.mu.Unlock()
				}
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
	for last, left := time.Now(), -1; time.Since(last) < patience && left != 0; time.Sleep(100 * time.Millisecond) {
		if n := office.missing(want); n != left {
			last, left = time.Now(), n
		}
	}
	if n := office.missing(want); n > 0 || len(want) == 0 {
		t.Errorf("%d of %d mails are lost", n, len(want))
	}
	for _, p := range w.nodes {
		p.terminate(t)
	}
	again, most := 0, 0
	for _, n := range office.accepted {
		again, most = again+max(0, n-1), max(most, n)
	}
	t.Logf("%d mails, %d accepted again in %d faults, one %d times", len(want), again, faults, most)
	// A fault can hit what is sent and what was accepted but isn't recorded yet: at most the window of each of both webhooks.
	if limit := faults * 2 * delivery.DefaultPerEndpoint; again > limit || most > 1+faults {
		t.Errorf("%d mails were accepted again, want at most %d", again, limit)
	}
}

// visit sends a form, and returns what the mails about an acknowledged response are known by.
func (w *world) visit(form, email string) []string {
	ctx := context.Background() // what was sent is finished
	_ = w.limit.Wait(ctx)
	header := map[string]string{"X-Forwarded-For": fmt.Sprintf("10.%d.%d.%d", rand.N(256), rand.N(256), rand.N(256))}
	a, _ := w.client.do(ctx, http.MethodPost, w.target()+"/f/"+form, fmt.Appendf(nil, `{"user":{"email":%q},"responses":{}}`, email), header)
	var created struct{ Reference string }
	if a.status >= 400 && a.status < 500 {
		w.t.Errorf("the form was answered with %d: %.300s", a.status, a.body)
	}
	if json.Unmarshal(a.body, &created) != nil || a.status != http.StatusCreated {
		time.Sleep(10 * time.Millisecond) // so that it does not spin while no node runs
		return nil
	}
	w.acked.Add(1)
	return []string{email, owner + " " + created.Reference}
}
