package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// count counts the rows of a table that belong to the webhook of the scene.
func (s *scene) count(t testing.TB, d Database, table, where string) int {
	t.Helper()
	n, err := d.DB.NewSelect().Table(table).Where(where, string(s.hook.ID)).Count(t.Context())
	must(t, err)
	return int(n)
}

// pruneDeleted looks at the tables: nobody sees the rows of a deleted webhook,
// whether they are there or not.
func pruneDeleted(t *testing.T, d Database) {
	s := newScene(t, d)
	const events = 7
	for range events {
		r, change := s.response("R" + string(s.id()))
		must(t, s.CreateResponse(t.Context(), r, 1, change))
	}
	claims := s.claim(t, s.now)
	outcomes := make([]delivery.Outcome, 0, len(claims))
	for _, c := range claims {
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Failed, Attempt: delivery.Attempt{StartedAt: s.now},
		})
	}
	_, err := s.Finish(t.Context(), outcomes)
	must(t, err)
	kept := s.addWebhook(t)
	r, change := s.response("last")
	must(t, s.CreateResponse(t.Context(), r, 1, change)) // waits for both
	must(t, s.DeleteWebhook(t.Context(), s.key(), formsvc.Change{}))
	if stats, err := s.QueueStats(t.Context(), s.now); err != nil || stats.Pending != 1 {
		t.Errorf("%d pending (%v), want the one of the other webhook", stats.Pending, err)
	}
	// Its attempts, and one delivery that waits, are left.
	const attempts = "delivery_id IN (SELECT d.id FROM formsvc_deliveries AS d WHERE d.webhook_id = ?)"
	if n := s.count(t, d, "formsvc_failing", "webhook_id = ?"); n != 0 {
		t.Error("the failures of a deleted webhook are still to be told")
	}
	if n := s.count(t, d, "formsvc_attempts", attempts); n != events {
		t.Fatalf("%d attempts before, want %d", n, events)
	}
	all, err := d.DB.NewSelect().Table("formsvc_attempts").Count(t.Context())
	must(t, err)
	calls, total := 0, 0
	for n := 1; n > 0; calls++ {
		n, err = s.Prune(t.Context(), time.Time{}, 3)
		must(t, err)
		total += n
	}
	left, err := d.DB.NewSelect().Table("formsvc_attempts").Count(t.Context())
	must(t, err)
	if n := s.count(t, d, "formsvc_deliveries", "webhook_id = ?"); n != 0 || all-left != events || total != events+events+1 {
		t.Errorf("%d deliveries left, %d attempts and %d rows in all deleted", n, all-left, total)
	}
	if calls != 4 { // of at most 3 of 8 deliveries each, and one that finds nothing
		t.Errorf("it took %d calls, want 4", calls)
	}
	if n := s.count(t, d, "formsvc_notices", "webhook_id = ?"); n != events {
		t.Errorf("%d notices left, want the %d of events that are not old", n, events)
	}
	s.hook = kept
	if claims := s.claim(t, s.now); len(claims) != 1 {
		t.Errorf("%d deliveries of the other webhook, want 1", len(claims))
	}
}

// feedLooks looks for a rare event among many others: one call ends without
// having found it, and says where to go on.
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
		if page.Next != q.After { // other transactions may keep the feed from showing anything yet
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

// feedTests has test events between others: a page has as many others as it may.
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
	for guard := time.Now().Add(time.Minute); ; { // until the feed has come to the last
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

// feedGoesOn deletes all events: a position from before is still before those
// that come after.
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
			n, err = s.Prune(t.Context(), s.now.Add(time.Hour), 100)
			must(t, err)
		}
	}
}

// finishUnclaimed gives outcomes with the leases of deliveries that nobody has
// claimed.
func finishUnclaimed(t *testing.T, d Database) {
	s := newScene(t, d)
	r, change := s.response("R1")
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	refused := func(what string, lease int64) {
		t.Helper()
		accepted, err := s.Finish(t.Context(), []delivery.Outcome{{
			ID: string(formsvc.DeliveryID(change.Events[0].ID, s.hook.ID)), Endpoint: string(s.hook.ID), Lease: lease,
			Result: delivery.Delivered, Attempt: delivery.Attempt{StartedAt: s.now},
		}})
		must(t, err)
		if accepted[0] {
			t.Errorf("the outcome of %s was accepted", what)
		}
	}
	refused("a delivery that was never claimed", 0)
	c := s.claim(t, s.now)[0]
	_, err := s.Finish(t.Context(), []delivery.Outcome{{
		ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Released, Due: s.now,
	}})
	must(t, err)
	refused("one that was given back", c.Lease+1)
	if n := len(s.claim(t, s.now)); n != 1 {
		t.Errorf("%d deliveries are due, want 1", n)
	}
}

// redeliverPruned takes away an event: its deliveries can't be made again.
func redeliverPruned(t *testing.T, d Database) {
	s := newScene(t, d)
	r, change := s.response("R1")
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	c := s.claim(t, s.now)[0]
	_, err := s.Finish(t.Context(), []delivery.Outcome{{
		ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: delivery.Failed, Attempt: delivery.Attempt{StartedAt: s.now},
	}})
	must(t, err)
	_, err = d.DB.NewDelete().Table("formsvc_events").Where("id = ?", c.EventID).Exec(t.Context())
	must(t, err)
	key := formsvc.DeliveryKey{AccountID: s.account, ID: formsvc.ID(c.ID)}
	if _, err := s.Redeliver(t.Context(), key, s.now, nil); !errors.Is(err, formsvc.ErrNotFound) {
		t.Errorf("Redeliver: %v, want ErrNotFound", err)
	}
	n, err := s.RedeliverFailed(t.Context(), formsvc.RedeliverQuery{Key: s.key(), Until: s.now.Add(time.Hour), At: s.now, Limit: 10}, nil)
	if n != 0 || err != nil {
		t.Errorf("RedeliverFailed: %d, %v; want none", n, err)
	}
}
