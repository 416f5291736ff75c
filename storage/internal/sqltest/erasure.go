package sqltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// orphans returns queries that count rows which must not exist.
func orphans() map[string]string {
	without := func(table string) string {
		return "SELECT count(*) FROM " + table + " AS x WHERE x.response_id IS NOT NULL AND NOT EXISTS " +
			"(SELECT 1 FROM formsvc_responses AS r WHERE r.campaign_id = x.campaign_id AND r.id = x.response_id)"
	}
	return map[string]string{
		"files without a response":      without("formsvc_files"),
		"comments without a response":   without("formsvc_comments"),
		"signatures without a response": without("formsvc_signatures"),
		"events without a response":     without("formsvc_events"),
		"deliveries without an event": "SELECT count(*) FROM formsvc_deliveries AS d WHERE NOT EXISTS " +
			"(SELECT 1 FROM formsvc_events AS e WHERE e.id = d.event_id)",
		"attempts without a delivery": "SELECT count(*) FROM formsvc_attempts AS a WHERE NOT EXISTS " +
			"(SELECT 1 FROM formsvc_deliveries AS d WHERE d.id = a.delivery_id)",
		"notices without an event": "SELECT count(*) FROM formsvc_notices AS n WHERE NOT EXISTS " +
			"(SELECT 1 FROM formsvc_events AS e WHERE e.id = n.event_id)",
		"answers about nothing": "SELECT count(*) FROM formsvc_idempotency AS i WHERE i.status <> 410 AND NOT EXISTS " +
			"(SELECT 1 FROM formsvc_responses AS r WHERE r.id = i.response_id)",
	}
}

// A load is everything that runs concurrently with erasures.
type load struct {
	*scene

	t        *testing.T
	ids      atomic.Int64
	stop     chan struct{}
	mu       sync.Mutex
	live     []formsvc.ResponseKey // the newest ones, newest last
	made     atomic.Int64
	added    atomic.Int64
	erased   atomic.Int64
	finished atomic.Int64
}

func (l *load) id() formsvc.ID {
	return formsvc.FloorID(l.now)[:24] + formsvc.ID(fmt.Sprintf("%012x", 1<<20+l.ids.Add(1)))
}

func (l *load) event(key formsvc.ResponseKey) formsvc.Event {
	return formsvc.Event{
		ID: l.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, Type: webhook.ResponseUpdated,
		Payload: []byte("{}"), CreatedAt: l.now,
	}
}

// submit adds a response that the others can find.
func (l *load) submit(ctx context.Context) error {
	r := formsvc.Response{
		ID: l.id(), AccountID: l.account, CampaignID: l.campaign.ID, Status: formsvc.StatusPending,
		User: formsvc.User{Email: "a@example.com"}, Version: 1, CreatedAt: l.now, UpdatedAt: l.now,
	}
	r.Reference = string(r.ID)
	key := formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
	change := formsvc.Change{Events: []formsvc.Event{l.event(key)}, Idempotency: &formsvc.IdempotencyRecord{
		AccountID: r.AccountID, Key: r.Reference, CreatedAt: l.now, Reply: formsvc.Reply{Status: 201, Body: []byte("{}"), ResponseID: r.ID},
	}}
	if err := l.CreateResponse(ctx, r, 1, change); err != nil {
		return err
	}
	l.made.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = append(l.live, key)
	return nil
}

// some returns up to a dozen of the newest responses, without the newest few.
func (l *load) some(newer int) []formsvc.ResponseKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []formsvc.ResponseKey
	for i := len(l.live) - 1 - newer; i >= 0 && len(list) < 12; i-- {
		list = append(list, l.live[i])
	}
	return list
}

// add adds records to responses, and changes them.
func (l *load) add(ctx context.Context) error {
	for i, key := range l.some(3) {
		var err error
		change := formsvc.Change{Events: []formsvc.Event{l.event(key)}}
		switch i % 4 {
		case 0:
			err = l.CreateFile(ctx, formsvc.File{
				ID: l.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, CreatedAt: l.now,
			}, func(*formsvc.Response) (formsvc.Change, error) { return change, nil })
		case 1:
			err = l.CreateComment(ctx, formsvc.Comment{
				ID: l.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, CreatedAt: l.now,
			}, change)
		case 2:
			_, err = l.CreateSignature(ctx, formsvc.Signature{
				ID: l.id(), AccountID: key.AccountID, CampaignID: key.CampaignID, ResponseID: key.ID, SignedAt: l.now, CreatedAt: l.now,
			}, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) { return change, nil })
		case 3:
			_, err = l.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return change, nil
			})
		}
		if err == nil {
			l.added.Add(1)
		} else if !errors.Is(err, formsvc.ErrNotFound) {
			return err
		}
	}
	return nil
}

// send makes attempts, some of which fail permanently.
func (l *load) send(ctx context.Context) error {
	claims, err := l.Claim(ctx, delivery.ClaimRequest{
		Now: l.now, Lease: time.Minute, Shares: []delivery.Share{{Endpoint: string(l.hook.ID), N: 20}},
	})
	if err != nil {
		return err
	}
	outcomes := make([]delivery.Outcome, len(claims))
	for i, c := range claims {
		outcomes[i] = delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: []delivery.Result{delivery.Failed, delivery.Delivered}[i%2],
			Attempt: delivery.Attempt{StartedAt: l.now},
		}
	}
	_, err = l.Finish(ctx, outcomes)
	l.finished.Add(int64(len(claims)))
	return err
}

// erase erases a few responses to which others may still add, and which another erasure
// may have chosen, too.
func (l *load) erase(ctx context.Context) error {
	if l.made.Load()-l.erased.Load() < 20 {
		time.Sleep(time.Millisecond) // there aren't enough
		return nil
	}
	out, err := l.Erase(ctx, formsvc.Erasing{AccountID: l.account, Responses: l.some(9)}, formsvc.Change{})
	l.erased.Add(int64(out.Responses))
	return err
}

// repeat calls do repeatedly until the load ends.
func (l *load) repeat(all *sync.WaitGroup, what string, do func(context.Context) error) {
	all.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			default:
			}
			if err := do(l.t.Context()); err != nil {
				l.t.Errorf("%s: %v", what, err)
				return
			}
		}
	})
}

// enough reports whether enough has run to reveal bugs.
func (l *load) enough() bool {
	return l.erased.Load() >= 300 && l.finished.Load() >= 300 && l.added.Load() >= 300
}

// eraseUnderLoad erases while everything else runs, and then looks for remaining rows of
// erased records.
func eraseUnderLoad(t *testing.T, d Database) {
	l := &load{scene: newScene(t, d), t: t, stop: make(chan struct{})}
	var all sync.WaitGroup
	for range 2 {
		l.repeat(&all, "submit", l.submit)
		l.repeat(&all, "add", l.add)
		l.repeat(&all, "send", l.send)
		l.repeat(&all, "erase", l.erase)
	}
	l.repeat(&all, "prune", func(ctx context.Context) error {
		_, err := l.Prune(ctx, formsvc.PruneEvents, l.now.Add(-time.Hour), 50)
		return err
	})
	for !l.enough() && !t.Failed() { // however long that takes
		time.Sleep(10 * time.Millisecond)
	}
	close(l.stop)
	all.Wait()
	t.Logf("%d responses made, %d things added, %d erased, %d attempts", l.made.Load(), l.added.Load(), l.erased.Load(), l.finished.Load())
	if !l.enough() {
		t.Errorf("too little went on")
	}
	for what, query := range orphans() {
		var n int
		if err := d.DB.NewRaw(query).Scan(t.Context(), &n); err != nil || n != 0 {
			t.Errorf("%d %s, %v", n, what, err)
		}
	}
	left := l.made.Load() - l.erased.Load()
	page, err := l.Responses(t.Context(), formsvc.ResponseQuery{AccountID: l.account, CampaignID: l.campaign.ID})
	must(t, err)
	rows, err := d.DB.NewSelect().Table("formsvc_responses").Count(t.Context())
	must(t, err)
	if page.Total != left || int64(rows) != left {
		t.Errorf("%d responses counted and %d there, want %d", page.Total, rows, left)
	}
}

// auditOnlyGrows checks that the database itself refuses to change or delete an audit
// entry.
func auditOnlyGrows(t *testing.T, d Database) {
	s := newScene(t, d)
	entry := formsvc.AuditEntry{ID: s.id(), AccountID: s.account, Actor: "somebody", Action: formsvc.AuditKeyCreated, CreatedAt: s.now}
	must(t, s.Note(t.Context(), formsvc.Change{Audit: &entry}))
	for _, statement := range []string{
		"UPDATE formsvc_audit SET actor = 'nobody'", "DELETE FROM formsvc_audit", "UPDATE formsvc_audit SET created_at = 0 WHERE actor = 'somebody'",
	} {
		if _, err := d.DB.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: no error", statement)
		}
	}
	page, err := s.Audit(t.Context(), formsvc.AuditQuery{AccountID: s.account})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Actor != "somebody" || !page.Items[0].CreatedAt.Equal(s.now) {
		t.Errorf("the audit trail is %+v", page.Items)
	}
}
