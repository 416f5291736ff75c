package sqltest

import (
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// count counts the rows of a table that belong to the webhook of the scene.
func (s *scene) count(t testing.TB, d Database, table, where string) int {
	t.Helper()
	n, err := d.DB.NewSelect().Table(table).Where(where, string(s.hook.ID)).Count(t.Context())
	must(t, err)
	return int(n)
}

// pruneDeleted checks the tables, because the rows of a deleted webhook are never listed.
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
	if stats, err := s.QueueStats(t.Context(), formsvc.QueueQuery{Now: s.now, Limit: 10}); err != nil || stats.Pending != 1 {
		t.Errorf("%d pending (%v), want the one of the other webhook", stats.Pending, err)
	}
	// Its attempts, and one pending delivery, are left.
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
		n, err = s.Prune(t.Context(), formsvc.PruneEvents, time.Time{}, 3)
		must(t, err)
		total += n
	}
	left, err := d.DB.NewSelect().Table("formsvc_attempts").Count(t.Context())
	must(t, err)
	if n := s.count(t, d, "formsvc_deliveries", "webhook_id = ?"); n != 0 || all-left != events || total != events+events+1 {
		t.Errorf("%d deliveries left, %d attempts and %d rows in all deleted", n, all-left, total)
	}
	if calls != 4 { // up to 3 of 8 deliveries each, and a last one that finds nothing
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
