package sqltest

import (
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// feedLooks looks for a rare event among many others: one call ends without finding it,
// and returns where to continue.
func feedLooks(t *testing.T, d Database) {
	s := newScene(t, d)
	must(t, s.DeleteWebhook(t.Context(), s.key(), formsvc.Change{}))
	r, change := s.response("R1")
	first := change.Events[0]
	for range 10_500 {
		e := first
		e.ID = s.id()
		change.Events = append(change.Events, e)
	}
	rare := first
	rare.ID, rare.Type = s.id(), webhook.SignatureCompleted
	change.Events = append(change.Events, rare)
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	q := formsvc.EventQuery{AccountID: s.account, Types: []formsvc.EventType{rare.Type}}
	empty := 0
	for {
		page, err := s.Events(t.Context(), q)
		must(t, err)
		if len(page.Items) > 0 {
			if page.Items[0].ID != rare.ID || len(page.Items) != 1 || page.More {
				t.Errorf("%d events, more: %t; want the one", len(page.Items), page.More)
			}
			break
		}
		if page.Next != q.After { // other transactions may hold up the feed
			if empty++; !page.More {
				t.Fatal("there is nothing more, but the event was not found")
			}
		}
		q.After = page.Next
	}
	if empty != 1 {
		t.Errorf("%d pages without the event, want 1", empty)
	}
}

// feedTests puts test events between others: a page is still filled to its limit.
func feedTests(t *testing.T, d Database) {
	s := newScene(t, d)
	var last formsvc.Event
	for range 4 {
		r, change := s.response("R" + string(s.id()))
		test := change.Events[0]
		test.ID = s.id()
		_, err := s.CreateTest(t.Context(), s.key(), test, nil)
		must(t, err)
		must(t, s.CreateResponse(t.Context(), r, 1, change))
		last = change.Events[0]
	}
	for guard := time.Now().Add(time.Minute); ; { // until the feed has reached the last event
		page, err := s.Events(t.Context(), formsvc.EventQuery{AccountID: s.account})
		must(t, err)
		if n := len(page.Items); n > 0 && page.Items[n-1].ID == last.ID {
			break
		}
		if time.Now().After(guard) {
			t.Fatalf("%d events, and not the last", len(page.Items))
		}
	}
	page, err := s.Events(t.Context(), formsvc.EventQuery{AccountID: s.account, Limit: 3})
	must(t, err)
	if len(page.Items) != 3 || !page.More {
		t.Errorf("%d events, more: %t; want 3, and one more", len(page.Items), page.More)
	}
}

// feedGoesOn deletes all events: a position from before is still before later events.
func feedGoesOn(t *testing.T, d Database) {
	s := newScene(t, d)
	var after formsvc.EventPosition
	for range 3 {
		r, change := s.response("R" + string(s.id()))
		must(t, s.CreateResponse(t.Context(), r, 1, change))
		for guard := time.Now().Add(time.Minute); ; {
			page, err := s.Events(t.Context(), formsvc.EventQuery{AccountID: s.account, After: after})
			must(t, err)
			if after = page.Next; len(page.Items) > 0 {
				break
			}
			if time.Now().After(guard) {
				t.Fatal("an event was missed")
			}
		}
		for n := 1; n > 0; {
			var err error
			n, err = s.Prune(t.Context(), formsvc.PruneEvents, s.now.Add(time.Hour), 100)
			must(t, err)
		}
	}
}
