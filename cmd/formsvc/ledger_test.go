//go:build long

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"path"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// A ledger records what clients know about the responses they created, outside of the program under test. It is safe for
// concurrent use.
type ledger struct {
	campaign string

	mu         sync.Mutex
	intents    map[string]bool   // the marker of every sent response
	acked      map[string]string // by marker: the UUID in the 201
	completing map[string]bool   // by UUID: whether its completion was sent
	completed  map[string]bool   // by UUID: whether that returned 200
	unanswered int               // requests on a connection that got no byte of a response
	cut        []string          // responses that broke off
	faults     []string          // wrong responses
}

func newLedger(campaign string) *ledger {
	return &ledger{
		campaign: campaign, intents: make(map[string]bool), acked: make(map[string]string),
		completing: make(map[string]bool), completed: make(map[string]bool),
	}
}

// acknowledged returns how many creations returned 201.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

func (l *ledger) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *ledger) fault(format string, args ...any) {
	l.note(func() { l.faults = append(l.faults, fmt.Sprintf(format, args...)) })
}

// work creates responses one after the other and completes some, until a request gets no complete or a wrong response.
func (l *ledger) work(ctx context.Context, c *client, name string) {
	for i := 0; ; i++ {
		uuid, ok := l.create(ctx, c, name+"-"+strconv.Itoa(i))
		if !ok || (i%3 == 0 && !l.complete(ctx, c, uuid)) {
			return
		}
	}
}

// create sends one response with a unique marker. The HTTP response counts from its status line on, which already
// acknowledges the creation.
func (l *ledger) create(ctx context.Context, c *client, marker string) (uuid string, ok bool) {
	l.note(func() { l.intents[marker] = true })
	begun := false
	a, err := c.do(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { begun = true },
	}), http.MethodPost, responsesPath(l.campaign), submission(marker))
	if a.status == http.StatusCreated {
		uuid = path.Base(a.header.Get("Location"))
		l.note(func() { l.acked[marker] = uuid })
	}
	switch {
	case err != nil:
		l.note(func() {
			switch {
			case begun:
				l.cut = append(l.cut, fmt.Sprintf("the answer to %s was cut off: %v", marker, err))
			case !errors.Is(err, syscall.ECONNREFUSED):
				l.unanswered++
			}
		})
		return uuid, false
	case a.status != http.StatusCreated:
		l.fault("%s was answered with %d: %s", marker, a.status, a.body)
		return "", false
	}
	var r response
	if err := json.Unmarshal(a.body, &r); err != nil || r.UUID != uuid {
		l.fault("%s was answered with %s for %s", marker, a.body, uuid)
	}
	return uuid, true
}

// complete sets the status of a response that no other client changes.
func (l *ledger) complete(ctx context.Context, c *client, uuid string) bool {
	l.note(func() { l.completing[uuid] = true })
	a, err := c.do(ctx, http.MethodPatch, responsePath(l.campaign, uuid), map[string]string{"status": "completed"})
	switch {
	case a.status == http.StatusOK:
		l.note(func() { l.completed[uuid] = true })
	case err == nil:
		l.fault("the completion of %s was answered with %d: %s", uuid, a.status, a.body)
	}
	return err == nil
}

// check compares the ledger with the stored responses. It returns the expected events and the marker of each response.
// Requests without a response may have been carried out once.
func (l *ledger) check(t testing.TB, c *client) (happened []happening, markers map[string]string) {
	t.Helper()
	stored := c.list(t, l.campaign)
	markers = make(map[string]string, len(stored))
	uuids := make(map[string]string, len(stored)) // by marker
	for i := range stored {
		r := &stored[i]
		marker, err := r.marker()
		switch {
		case err != nil:
			t.Errorf("invented: %v", err)
		case !l.intents[marker]:
			t.Errorf("invented: response %s has the marker %q, which nobody sent", r.UUID, marker)
		case uuids[marker] != "":
			t.Errorf("duplicated: responses %s and %s are both %q", uuids[marker], r.UUID, marker)
		case markers[r.UUID] != "":
			t.Errorf("response %s is listed twice", r.UUID)
		}
		markers[r.UUID], uuids[marker] = marker, r.UUID
		happened = append(happened, happening{"response.created", r.UUID})
		if l.checkStatus(t, r) {
			happened = append(happened, happening{"response.status_changed", r.UUID}, happening{"response.completed", r.UUID})
		}
	}
	for marker, uuid := range l.acked {
		if uuids[marker] != uuid {
			t.Errorf("lost: %q was answered 201 as %s, and is listed as %q", marker, uuid, uuids[marker])
		}
	}
	var v campaign
	c.want(t, http.StatusOK, http.MethodGet, "/v1/campaigns/"+l.campaign, nil, &v)
	if v.ResponseCount != len(stored) {
		t.Errorf("responseCount is %d, %d are listed", v.ResponseCount, len(stored))
	}
	return happened, markers
}

// checkStatus checks the status of a stored response and reports whether it is completed.
func (l *ledger) checkStatus(t testing.TB, r *response) bool {
	t.Helper()
	switch {
	case r.Status == "pending":
		if l.completed[r.UUID] {
			t.Errorf("lost: the completion of %s was answered 200", r.UUID)
		}
		return false
	case r.Status != "completed" || !l.completing[r.UUID]:
		t.Errorf("invented: response %s has the status %q", r.UUID, r.Status)
	}
	return true
}

// readEach reads every acknowledged response by its UUID.
func (l *ledger) readEach(t testing.TB, c *client) {
	t.Helper()
	type entry struct{ marker, uuid string }
	entries := make(chan entry)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for e := range entries {
				var r response
				a, err := c.do(t.Context(), http.MethodGet, responsePath(l.campaign, e.uuid), nil)
				if err == nil && a.status == http.StatusOK {
					err = json.Unmarshal(a.body, &r)
				}
				if err != nil || a.status != http.StatusOK {
					t.Errorf("lost: %q was answered 201 as %s, which reads as %d %.200s (%v)", e.marker, e.uuid, a.status, a.body, err)
					continue
				}
				if marker, err := r.marker(); err != nil || marker != e.marker || r.UUID != e.uuid {
					t.Errorf("%q was answered 201 as %s, which reads as %s", e.marker, e.uuid, a.body)
				}
			}
		})
	}
	for marker, uuid := range l.acked {
		entries <- entry{marker, uuid}
	}
	close(entries)
	readers.Wait()
}
