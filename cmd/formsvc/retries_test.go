//go:build long

package main_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// A delivery is attempted four times with the same bytes, and then logged as failed. Every status except 2xx is a failure,
// even a redirect, which is not followed. The retries have at least the configured delays.
func TestDeliveryFailsPermanentlyAfterFourAttempts(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "200ms,400ms,600ms")
		c := newClient(t, s.url, s.firstKey(t))
		elsewhere := receiver(t)
		cases := []*failing{
			{name: "500", status: 500, class: "status", reply: webhooktest.Reply{Status: 500, Body: "no"}},
			{name: "404", status: 404, class: "status", reply: webhooktest.Reply{Status: 404}},
			{name: "redirect", status: 307, class: "redirect", reply: webhooktest.Reply{
				Status: 307, Header: http.Header{"Location": {elsewhere.URL()}},
			}},
		}
		for _, f := range cases {
			f.listen(t, dsn)
		}
		refused := hook(t, dsn, "http://"+closedPort(t), "response.created")
		campaign := c.campaign(t, "Retries")
		uuid := c.submit(t, campaign, "x").UUID

		var failures map[string]failure
		eventually(t, "every webhook has failed for good", func() bool {
			failures = finalFailures(s)
			return len(failures) == len(cases)+1
		})
		// An extra attempt would come before another round of failures.
		s2 := c.submit(t, campaign, "y").UUID
		eventually(t, "every webhook has failed for good again", func() bool {
			return strings.Count(s.log.String(), finalFailure) == 2*len(failures)
		})
		for _, f := range cases {
			t.Run(f.name, func(t *testing.T) {
				f.check(t, dsn, uuid, failures[f.hook])
				f.check(t, dsn, s2, failure{})
			})
		}
		if f := failures[refused]; f.Attempts != 4 || f.Error != "connect" {
			t.Errorf("a closed port: the final failure is %+v, want 4 attempts and connect", f)
		}
		if n := len(elsewhere.Deliveries()) + len(elsewhere.Rejected()); n != 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
		for _, text := range []string{secret, "Lovelace", c.key} {
			if strings.Contains(s.log.String(), text) {
				t.Errorf("the log contains %q", text)
			}
		}
	})
}

// A receiver that doesn't respond in time counts as failed.
func TestDeliveryTimesOut(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "200ms,400ms,600ms", "--webhook-timeout", "2s")
		c := newClient(t, s.url, s.firstKey(t))
		f := &failing{class: "timeout", reply: webhooktest.Reply{Hang: true}}
		f.listen(t, dsn)
		campaign := c.campaign(t, "Timeout")
		var uuids []string
		for i := range 2 {
			uuids = append(uuids, c.submit(t, campaign, "x").UUID)
			eventually(t, "it has failed for good", func() bool { return strings.Count(s.log.String(), finalFailure) == i+1 })
		}
		f.check(t, dsn, uuids[0], finalFailures(s)[f.hook])
		f.check(t, dsn, uuids[1], failure{})
	})
}

// If a retry succeeds, there are no further attempts.
func TestDeliverySucceedsOnRetry(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "100ms,100ms,100ms")
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.Answer(webhooktest.Reply{Status: 503}, webhooktest.Reply{Status: 201})
		hook(t, dsn, r.URL(), "response.created")
		campaign := c.campaign(t, "Retries")
		first := c.submit(t, campaign, "x").UUID
		arrivals(t, r, 2)
		// The next delivery fails permanently, and takes longer than any retry of the first.
		r.AnswerAlways(webhooktest.Reply{Status: 503})
		second := c.submit(t, campaign, "y").UUID
		eventually(t, "the second delivery fails for good", func() bool { return len(finalFailures(s)) == 1 })
		attempts := make(map[string]int)
		for _, d := range arrivals(t, r, 6) {
			attempts[parsed(t, d.Delivery.Body).Data.Response.UUID]++
		}
		if attempts[first] != 2 || attempts[second] != 4 {
			t.Errorf("attempts: %d and %d, want 2 and 4", attempts[first], attempts[second])
		}
	})
}

// failing is a receiver that never accepts a delivery.
type failing struct {
	name     string
	reply    webhooktest.Reply
	status   int    // in the logged failure
	class    string // likewise
	receiver *webhooktest.Receiver
	hook     string
}

// listen starts the receiver and creates its webhook.
func (f *failing) listen(t *testing.T, dsn string) {
	t.Helper()
	f.receiver = receiver(t)
	f.receiver.AnswerAlways(f.reply)
	f.hook = hook(t, dsn, f.receiver.URL(), "response.created")
}

// check checks the attempts to deliver the event of a response, and the logged failure unless that is zero.
func (f *failing) check(t *testing.T, dsn, uuid string, final failure) {
	t.Helper()
	var got []webhooktest.Received
	for _, d := range arrivals(t, f.receiver, 8) {
		if parsed(t, d.Delivery.Body).Data.Response.UUID == uuid {
			got = append(got, d)
		}
	}
	if len(got) != 4 {
		t.Fatalf("%d attempts, want 4", len(got))
	}
	id := got[0].Header.Get("X-Service-Delivery")
	for i, d := range got {
		if !bytes.Equal(d.Delivery.Body, got[0].Delivery.Body) {
			t.Errorf("attempt %d sends\n%s, the first\n%s", i+1, d.Delivery.Body, got[0].Delivery.Body)
		}
		if h := d.Header; h.Get("X-Service-Attempt") != strconv.Itoa(i+1) || h.Get("X-Service-Delivery") != id {
			t.Errorf("attempt %d has the headers %v", i+1, h)
		}
	}
	list := deliveries(t, dsn, f.hook)
	at := slices.IndexFunc(list, func(d delivery) bool { return d.UUID == id })
	if at < 0 {
		t.Fatalf("delivery %s is not listed", id)
	}
	checkSchedule(t, &list[at], 200*time.Millisecond, 400*time.Millisecond, 600*time.Millisecond)
	if final != (failure{}) {
		want := failure{
			Webhook: f.hook, Delivery: id, Attempts: 4, Status: f.status, Error: f.class, Event: "response.created",
		}
		if final != want {
			t.Errorf("the final failure is logged as %+v, want %+v", final, want)
		}
	}
}

// finalFailure is the log message of a permanent failure.
const finalFailure = "webhook delivery failed permanently"

// failure is a log line about a delivery that failed permanently.
type failure struct {
	Webhook, Delivery, Event, Error string
	Attempts, Status                int
}

// finalFailures returns the first permanent failure of each webhook in the log.
func finalFailures(s *server) map[string]failure {
	list := make(map[string]failure)
	for line := range strings.Lines(s.log.String()) {
		var v struct {
			Msg string
			failure
		}
		if json.Unmarshal([]byte(line), &v) != nil || v.Msg != finalFailure {
			continue // also an incomplete line
		}
		if _, ok := list[v.Webhook]; !ok {
			list[v.Webhook] = v.failure
		}
	}
	return list
}

// closedPort returns an address that refuses connections.
func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
