package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// longLease sets leases that never end during a test: deliveries that arrive after a restart were returned to the queue.
var longLease = []string{"--webhook-lease", "24h"}

// SIGTERM under load interrupts no request: every response that began is complete and 201, and its data is there after a
// restart. A request that is sent while its idle connection is closed gets no response and must leave nothing behind.
// Deliveries end or return to the queue.
func TestTerminationInterruptsNoRequest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		const rounds, clients = 5, 8
		box := newInbox(t, 50*time.Millisecond, false)
		s := start(t, dsn, longLease...)
		key := s.firstKey(t)
		l := newLedger(newClient(t, s.url, key).campaign(t, "Terminate"))
		hook(t, dsn, box.url, "all")
		for round := range rounds {
			before := l.acknowledged()
			var working sync.WaitGroup
			for i := range clients {
				c := newClient(t, s.url, key)
				c.http.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
				working.Go(func() { l.work(t.Context(), c, fmt.Sprintf("%d-%d", round, i)) })
			}
			eventually(t, "there is load", func() bool { return l.acknowledged() >= before+50 || s.ended() })
			s.terminate(t)
			took := s.stopped(t)
			working.Wait()
			t.Logf("round %d: ended %v after SIGTERM", round+1, took.Round(time.Millisecond))
			s = start(t, dsn, longLease...)
		}

		c := newClient(t, s.url, key)
		for _, fault := range append(l.faults, l.cut...) {
			t.Error(fault)
		}
		happened, markers := l.check(t, c)
		for uuid, marker := range markers {
			if l.acked[marker] != uuid {
				t.Errorf("%s was stored as %s, but the request got no answer", marker, uuid)
			}
		}
		for uuid := range l.completing {
			if !l.completed[uuid] && l.stored(t, c, uuid).Status == "completed" {
				t.Errorf("the completion of %s was stored, but the request got no answer", uuid)
			}
		}
		box.wait(t, happened)
		repeated := box.check(t, happened, markers)
		t.Logf("%d requests sent, %d acknowledged and stored, %d lost on their way and not stored; %d events, %d came again",
			len(l.intents), len(l.acked), l.unanswered, len(happened), repeated)
		if repeated > 0 {
			t.Errorf("%d deliveries were repeated, although none was cut off", repeated)
		}
	})
}

// stored reads a response.
func (l *ledger) stored(t testing.TB, c *client, uuid string) (r response) {
	t.Helper()
	c.want(t, http.StatusOK, http.MethodGet, responsePath(l.campaign, uuid), nil, &r)
	return r
}

// A request that was accepted before SIGTERM gets its response even if its body comes later, while new connections are
// already refused.
func TestTerminationWaitsForSlowRequest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		key := s.firstKey(t)
		l := newLedger(newClient(t, s.url, key).campaign(t, "Slow"))
		body, err := json.Marshal(submission("slow"))
		if err != nil {
			t.Fatal(err)
		}
		host := strings.TrimPrefix(s.url, "http://")
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		write := func(text string) {
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
		}
		write("POST " + responsesPath(l.campaign) + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + key +
			"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
		answers := bufio.NewReader(conn)
		// This response comes when the handler starts to read the body.
		if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("the server does not ask for the body: %v, %v", resp, err)
		}
		write(string(body[:len(body)/2]))

		s.terminate(t)
		eventually(t, "new connections are refused", func() bool {
			other, err := net.Dial("tcp", host)
			if err == nil {
				_ = other.Close()
			}
			return err != nil
		})
		write(string(body[len(body)/2:]))
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("the request was cut off: %v", err)
		}
		defer resp.Body.Close()
		var r response
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("the request was answered with %s (%v)", resp.Status, err)
		}
		s.stopped(t)

		s = start(t, dsn)
		if again := l.stored(t, newClient(t, s.url, key), r.UUID); again.Reference != r.Reference {
			t.Errorf("answered %+v, stored %+v", r, again)
		}
	})
}

// A hanging receiver delays the shutdown by at most the drain time. The interrupted delivery is sent again right after the
// restart, and doesn't count as an attempt.
func TestTerminationReturnsHangingDeliveryToQueue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, longLease...)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Hang: true})
		hook(t, dsn, r.URL(), "all")
		c.submit(t, c.campaign(t, "Hang"), "x")
		first := arrivals(t, r, 1)[0]
		s.terminate(t)
		t.Logf("ended %v after SIGTERM", s.stopped(t).Round(time.Millisecond))

		r.AnswerAlways(webhooktest.Reply{})
		start(t, dsn, longLease...)
		got := arrivals(t, r, 2)
		if string(got[1].Delivery.Body) != string(first.Delivery.Body) {
			t.Errorf("the delivery came again with other bytes:\n%s\n%s", first.Delivery.Body, got[1].Delivery.Body)
		}
		if n := got[1].Header.Get("X-Service-Attempt"); n != "1" {
			t.Errorf("the delivery came again as attempt %s; the one that was cut off does not count", n)
		}
	})
}

// A second signal ends a server at once.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Hang: true})
		hook(t, dsn, r.URL(), "all")
		c.submit(t, c.campaign(t, "Hang"), "x")
		arrivals(t, r, 1)
		s.terminate(t)
		eventually(t, "formsvc is stopping", func() bool { return strings.Contains(s.log.String(), `"msg":"stopping"`) })
		took := eventually(t, "formsvc ends", func() bool {
			err := s.cmd.Process.Signal(syscall.SIGTERM)
			if err != nil && !errors.Is(err, os.ErrProcessDone) { // it may have ended by now
				t.Fatalf("SIGTERM: %v", err)
			}
			return s.ended()
		})
		if s.cmd.ProcessState.ExitCode() == 0 {
			t.Error("formsvc ended with status 0: it took its drain time")
		}
		t.Logf("ended %v after the second signal", took.Round(time.Millisecond))
	})
}
