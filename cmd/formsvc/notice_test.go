//go:build long

package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/cmd/formsvc/internal/smtptest"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// With a shortened schedule in real time, there are four attempts with at least the configured delays. Then there is a log
// line for each delivery and one mail for each webhook, however many deliveries failed. For an account without a contact,
// there is a log line instead.
func TestPermanentFailureIsLoggedAndMailed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		mails := smtptest.New(t, smtptest.Options{User: "forms", Password: "mail-password", StartTLS: true})
		variables := []string{
			"FORMSVC_SMTP=smtp://forms:mail-password@" + mails.Addr(), "FORMSVC_MAIL_FROM=Forms <forms@example.com>",
			"SSL_CERT_FILE=" + mails.RootsFile(t),
		}
		s := execute(t, dsn, variables, append(allowLoopback, "--webhook-retries", "1s,2s,3s")...).started(t)
		c := newClient(t, s.url, s.firstKey(t))
		manage(t, dsn, "accounts", "contact", "default", "ops@example.com")
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Status: 503})
		uuid := hook(t, dsn, r.URL()+"/path-token", "response.created")
		campaign := c.campaign(t, "Notice")
		const several = 3
		for range several {
			c.submit(t, campaign, "x")
		}
		eventually(t, "all fail for the last time", func() bool { return strings.Count(s.log.String(), finalFailure) == several })
		for _, d := range deliveries(t, dsn, uuid) {
			checkSchedule(t, &d, time.Second, 2*time.Second, 3*time.Second)
		}
		eventually(t, "a mail arrives", func() bool { return len(mails.Mails()) > 0 })

		// A mail that hasn't come before the mail of another webhook doesn't come at all.
		manage(t, dsn, "accounts", "create", "Other")
		key := strings.TrimSpace(manage(t, dsn, "keys", "create", "--name", "o", "--permissions", "all", "--account", "Other"))
		other := newClient(t, s.url, key)
		hook(t, dsn, "http://"+closedPort(t), "response.created", "--account", "Other")
		other.submit(t, other.campaign(t, "Other"), "x")
		eventually(t, "the log reports a webhook without contact", func() bool { return strings.Contains(s.log.String(), "no contact") })

		got := mails.Mails()
		if len(got) != 1 || got[0].To[0] != "ops@example.com" || !got[0].TLS || got[0].User != "forms" {
			t.Fatalf("%d mails: %+v", len(got), got)
		}
		for _, want := range []string{
			"failed", "status 503", "webhooks deliveries " + uuid, "webhooks redeliver " + uuid, strings.TrimPrefix(r.URL(), "http://"),
		} {
			// The encoding may break lines.
			if !strings.Contains(strings.ReplaceAll(got[0].Text, "=\r\n", ""), want) {
				t.Errorf("the mail does not have %q:\n%s", want, got[0].Text)
			}
		}
		for _, text := range []string{"mail-password", "path-token", secret} {
			if strings.Contains(s.log.String(), text) || strings.Contains(got[0].Text, text) {
				t.Errorf("the log or the mail contains %q", text)
			}
		}
	})
}

// checkSchedule checks the times of the attempts of a failed delivery.
func checkSchedule(t testing.TB, d *delivery, delays ...time.Duration) {
	t.Helper()
	if d.State != "failed" || len(d.Attempts) != len(delays)+1 {
		t.Errorf("the delivery is %+v", d)
		return
	}
	for i, delay := range delays {
		before, after := d.Attempts[i], d.Attempts[i+1]
		ended := before.StartedAt.Add(time.Duration(before.DurationMs * float64(time.Millisecond)))
		// Times are shown in milliseconds.
		if gap := after.StartedAt.Sub(ended); gap < delay-2*time.Millisecond || after.Number != i+2 {
			t.Errorf("attempt %d (number %d) began %v after the one before ended, want at least %v", i+2, after.Number, gap, delay)
		}
	}
}

// Notices survive a kill: permanent failures that were not reported before are reported after the restart. Here a full pipe
// blocks the log until then.
func TestKillLosesNoNotice(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		const hooks, events = 20, 20 // about twice the capacity of a pipe
		flags := append(allowLoopback, "--webhook-retries", "1ms", "--webhook-timeout", "2s", "--webhook-lease", "7s")
		log, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := &server{dsn: dsn, done: make(chan struct{})}
		s.run(t, writer, nil, flags)
		_ = writer.Close() // the server has its own copy
		for !s.serving() {
			if _, err := io.CopyN(&s.log, log, 1); err != nil {
				t.Fatalf("%v\n%s", err, s.log.String())
			}
		}
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Status: 500})
		for i := range hooks {
			c.want(t, http.StatusCreated, http.MethodPost, "/v1/webhooks", map[string]any{
				"url": r.URL() + "/" + strconv.Itoa(i), "events": []string{"response.created"}, "secret": secret,
			}, nil)
		}
		campaign := c.campaign(t, "Notices")
		for range events {
			c.submit(t, campaign, "x")
		}
		eventually(t, "every delivery has failed for the last time", func() bool {
			return rows(t, dsn, "formsvc_notices") == hooks*events
		})
		s.kill()
		if _, err := io.Copy(&s.log, log); err != nil {
			t.Fatal(err)
		}
		told := make(map[string]int)
		readNotices(t, s, told)
		t.Logf("%d of %d were told of before", len(told), hooks*events)
		if len(told) == hooks*events {
			t.Fatal("INVALID: all were told of before the server was killed")
		}
		s = start(t, dsn, flags...)
		c.url = s.url
		// The leases of the killed server end later. The server looks for them on a failure, otherwise once a minute.
		more, looks, before := 0, 0, 0
		eventually(t, "every delivery is told of", func() bool {
			readNotices(t, s, told)
			if looks++; len(told) > before {
				looks, before = 0, len(told)
			}
			if looks >= 50 {
				c.submit(t, campaign, "x")
				more, looks = more+1, 0
			}
			return len(told) == hooks*(events+more)
		})
	})
}

// readNotices records which deliveries a server's log reports as permanently failed.
func readNotices(t testing.TB, s *server, told map[string]int) {
	t.Helper()
	for line := range strings.Lines(s.log.String()) {
		var v struct{ Msg, Delivery string }
		if json.Unmarshal([]byte(line), &v) == nil && v.Msg == finalFailure {
			told[v.Delivery]++
		}
	}
}
