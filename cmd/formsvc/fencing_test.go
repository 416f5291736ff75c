//go:build long

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A server that is paused for longer than its lease can't overwrite the work of another server. Every event arrives, every
// attempt has its own number, and the outcomes of the first server are rejected.
func TestStoppedServerCannotOverwrite(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		flags := []string{"--webhook-timeout", "2s", "--webhook-lease", "7s", "--webhook-retries", "200ms,200ms,200ms"}
		first := start(t, dsn, flags...)
		c := newClient(t, first.url, first.firstKey(t))
		campaign := c.campaign(t, "Fencing")
		box := newInbox(t, 0, false)
		box.gate = make(chan struct{})
		open := sync.OnceFunc(func() { close(box.gate) })
		t.Cleanup(open) // runs before the inbox waits for held requests
		uuid := hook(t, dsn, box.url, "response.created")
		var happened []happening
		markers := make(map[string]string)
		submit := func(n int) {
			for range n {
				r := c.submit(t, campaign, "x")
				happened = append(happened, happening{"response.created", r.UUID})
				markers[r.UUID] = "x"
			}
		}
		submit(10)
		eventually(t, "the first server waits for an answer", func() bool { return box.held.Load() > 0 })
		signal(t, first, syscall.SIGSTOP)
		open() // the response is sent, but nobody reads it
		second := start(t, dsn, flags...)
		c.url = second.url
		submit(10)
		box.wait(t, happened)
		eventually(t, "the second server has recorded it all", func() bool {
			return len(deliveries(t, dsn, uuid, "--state", "delivered")) == len(happened)
		})
		before := deliveries(t, dsn, uuid)
		signal(t, first, syscall.SIGCONT)
		eventually(t, "the first server's outcome is refused", func() bool { return strings.Contains(first.log.String(), refusedOutcome) })
		submit(10) // both work again
		box.wait(t, happened)
		if repeated := box.check(t, happened, markers); repeated == 0 {
			t.Error("INVALID: nothing was sent by both servers")
		}
		eventually(t, "all are delivered", func() bool {
			return len(deliveries(t, dsn, uuid, "--state", "delivered")) == len(happened)
		})
		after := deliveries(t, dsn, uuid)
		checkNumbers(t, after)
		for i, d := range before { // newest first
			if now := after[len(after)-len(before)+i]; now.UUID != d.UUID || now.AttemptCount != d.AttemptCount {
				t.Errorf("the first server changed %+v to %+v", d, now)
			}
		}
		first.terminate(t)
		first.stopped(t)
	})
}

// refusedOutcome is the log message for an outcome that the queue rejected.
const refusedOutcome = "not accepted"

// checkNumbers checks that the attempts of each delivery are numbered from 1.
func checkNumbers(t testing.TB, list []delivery) {
	t.Helper()
	for _, d := range list {
		for i, a := range d.Attempts {
			if a.Number != i+1 {
				t.Errorf("attempt %d of %s has the number %d", i+1, d.UUID, a.Number)
			}
		}
		if d.AttemptCount != len(d.Attempts) {
			t.Errorf("%s counts %d attempts and lists %d", d.UUID, d.AttemptCount, len(d.Attempts))
		}
	}
}

// signal sends a signal to a server.
func signal(t testing.TB, s *server, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%v: %v", sig, err)
	}
	if sig == syscall.SIGSTOP {
		eventually(t, "all its threads have stopped", func() bool { return stands(t, s) })
	}
}

// stands reports whether all threads of a server have stopped.
func stands(t testing.TB, s *server) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		missing(t, "needs /proc to see that a process has stopped")
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // a thread may have ended
		_, state, _ := strings.Cut(string(text), ") ")
		if len(text) > 0 && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}
