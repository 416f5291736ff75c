//go:build long

package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// SIGTERM under load interrupts no request: every response that began is complete and 201, and its data is there after a
// restart. A request that is sent while its idle connection is closed gets no response and must leave nothing behind.
// Deliveries end or return to the queue.
func TestTerminationInterruptsNoRequest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		const rounds, clients = 5, 8
		box := newInbox(t, 50*time.Millisecond)
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

// stored reads a response.
func (l *ledger) stored(t testing.TB, c *client, uuid string) (r response) {
	t.Helper()
	c.want(t, http.StatusOK, http.MethodGet, responsePath(l.campaign, uuid), nil, &r)
	return r
}
