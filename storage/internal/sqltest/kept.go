package sqltest

import (
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
	kept := s.hook
	s.hook = s.addWebhook(t)
	r, change := s.response("last")
	must(t, s.CreateResponse(t.Context(), r, 1, change))
	s.hook, kept = kept, s.hook
	must(t, s.DeleteWebhook(t.Context(), s.key()))
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
	if n := s.count(t, d, "formsvc_deliveries", "webhook_id = ?"); n != 0 || all-left != events || total != 2*events+1 {
		t.Errorf("%d deliveries left, %d attempts and %d rows in all deleted", n, all-left, total)
	}
	if calls != 4 { // three of at most 3 deliveries, and one that finds nothing
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
	must(t, s.DeleteWebhook(t.Context(), s.key()))
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
