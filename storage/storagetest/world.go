package storagetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A world is a test with its store. Its new… methods build valid records, in the order of their IDs and the same in
// every run; its add… methods also store them.
type world struct {
	*testing.T
	ctx    context.Context
	store  Store
	open   func(testing.TB) Store // opens another empty store
	reopen func(testing.TB, Store) Store
	count  atomic.Int64
	raised atomic.Int64 // events that newEvent built

	mu    sync.Mutex
	hooks []formsvc.ID // of all webhooks that newWebhook built
}

func newWorld(t *testing.T, open func(testing.TB) Store, reopen func(testing.TB, Store) Store) *world {
	return &world{T: t, ctx: t.Context(), store: open(t), open: open, reopen: reopen}
}

// start returns the time of a world's first record; everything is due a day later.
func start() time.Time   { return time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.UTC) }
func nextDay() time.Time { return start().Add(24 * time.Hour) }

// next returns the ID and the time of a new record. Some IDs differ in their
// time and some only in their last digits.
func (w *world) next() (formsvc.ID, time.Time) {
	n := w.count.Add(1)
	at := start().Add(time.Duration(n) * 701 * time.Microsecond)
	return idAt(at, n), at
}

func (w *world) nextID() formsvc.ID {
	id, _ := w.next()
	return id
}

func idAt(t time.Time, n int64) formsvc.ID {
	const node = len("00000000-0000-7000-8000-")
	return formsvc.FloorID(t)[:node] + formsvc.ID(fmt.Sprintf("%012x", n))
}

func (w *world) newAccount() formsvc.Account {
	id, at := w.next()
	return formsvc.Account{ID: id, Name: "account " + string(id), CreatedAt: at}
}

func (w *world) newKey(account formsvc.ID) formsvc.Key {
	id, at := w.next()
	return formsvc.Key{
		ID: id, AccountID: account, Name: "key", Prefix: "formsvc_abc123", Hash: keyHash(id),
		Permissions: []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesWrite}, CreatedAt: at,
	}
}

func keyHash(id formsvc.ID) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }

func (w *world) newCampaign(account formsvc.ID) formsvc.Campaign {
	id, at := w.next()
	return formsvc.Campaign{
		ID: id, AccountID: account, Version: 1, CreatedAt: at, UpdatedAt: at,
		CampaignInput: formsvc.CampaignInput{Title: "Campaign", Status: formsvc.CampaignOpen},
	}
}

func (w *world) newResponse(c *formsvc.Campaign) formsvc.Response {
	id, at := w.next()
	return formsvc.Response{
		ID: id, AccountID: c.AccountID, CampaignID: c.ID, Reference: "R-" + string(id[24:]),
		Status: formsvc.StatusPending, User: formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "q", Value: []string{"yes"}}),
		Version: 1, CreatedAt: at, UpdatedAt: at,
	}
}

func (w *world) newFile(r *formsvc.Response) formsvc.File {
	id, at := w.next()
	return formsvc.File{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Name: "scan.pdf",
		ContentType: "application/pdf", Module: "q", Size: 5, SHA256: sha256.Sum256([]byte(id)),
		Blocks: []byte{0, 1, 0xfe, 0xff}, CreatedAt: at,
	}
}

func (w *world) newWebhook(account formsvc.ID) formsvc.Webhook {
	id, at := w.next()
	w.mu.Lock()
	w.hooks = append(w.hooks, id)
	w.mu.Unlock()
	return formsvc.Webhook{
		ID: id, AccountID: account, URL: "https://example.com/" + string(id), Events: webhook.EventTypes(),
		Secret: "secret of " + string(id), Version: 1, CreatedAt: at, UpdatedAt: at,
	}
}

// newEvent returns an event; every other one has a trace.
func (w *world) newEvent(r *formsvc.Response) formsvc.Event {
	id, at := w.next()
	e := formsvc.Event{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Type: webhook.ResponseCreated,
		Payload: []byte(`{"id":"` + string(id) + `"}`), CreatedAt: at,
	}
	if w.raised.Add(1)%2 != 0 {
		e.TraceParent = "00-" + strings.ReplaceAll(string(id), "-", "") + "-0000" + string(id[24:]) + "-01"
	}
	return e
}

// newTestEvent returns a test event about a campaign and a response that don't exist.
func (w *world) newTestEvent(account formsvc.ID) formsvc.Event {
	e := w.newEvent(&formsvc.Response{ID: w.nextID(), AccountID: account, CampaignID: w.nextID()})
	e.Test = true
	return e
}

func (w *world) addAccount(keys ...formsvc.Key) formsvc.Account {
	w.Helper()
	a := w.newAccount()
	for i := range keys {
		keys[i].AccountID = a.ID
	}
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, a, keys, formsvc.Change{}))
	return a
}

func (w *world) addKey(account formsvc.ID) formsvc.Key {
	w.Helper()
	k := w.newKey(account)
	w.must("CreateKey", w.store.CreateKey(w.ctx, k, formsvc.Change{}))
	return k
}

func (w *world) addCampaign(account formsvc.ID) formsvc.Campaign {
	w.Helper()
	c := w.newCampaign(account)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	return c
}

// addResponse adds a response that raises the event "response.created".
func (w *world) addResponse(c *formsvc.Campaign) (formsvc.Response, formsvc.Event) {
	w.Helper()
	r := w.newResponse(c)
	e := w.newEvent(&r)
	w.must("CreateResponse", w.create(r, e))
	return r, e
}

// addFile adds a file that raises no event.
func (w *world) addFile(r *formsvc.Response) formsvc.File {
	w.Helper()
	f := w.newFile(r)
	w.must("CreateFile", w.createFile(f))
	return f
}

func (w *world) addWebhook(account formsvc.ID) formsvc.Webhook {
	w.Helper()
	hook := w.newWebhook(account)
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	return hook
}

// subscribe stores a webhook, whose subscription must be new.
func (w *world) subscribe(hook formsvc.Webhook, limit int) error {
	stored, created, err := w.store.CreateWebhook(w.ctx, hook, limit, nil)
	if err == nil {
		w.same("webhook as created", stored, hook)
		if !created {
			w.Errorf("CreateWebhook: not created, though the account has no such subscription")
		}
	}
	return err
}

// create stores a response of a campaign at version 1.
func (w *world) create(r formsvc.Response, events ...formsvc.Event) error {
	return w.store.CreateResponse(w.ctx, r, 1, formsvc.Change{Events: events})
}

// createFile stores a file, with events.
func (w *world) createFile(f formsvc.File, events ...formsvc.Event) error {
	return w.store.CreateFile(w.ctx, f, func(*formsvc.Response) (formsvc.Change, error) {
		return formsvc.Change{Events: events}, nil
	})
}

// A scene is an account with a campaign and a webhook that subscribes to everything.
type scene struct {
	account  formsvc.Account
	campaign formsvc.Campaign
	hook     formsvc.Webhook
}

func (w *world) addScene() *scene {
	w.Helper()
	a := w.addAccount()
	return &scene{account: a, campaign: w.addCampaign(a.ID), hook: w.addWebhook(a.ID)}
}

func keyOf(r *formsvc.Response) formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
}

func fileKey(f *formsvc.File) formsvc.FileKey {
	return formsvc.FileKey{AccountID: f.AccountID, ID: f.ID}
}

func campaignKey(c *formsvc.Campaign) formsvc.CampaignKey {
	return formsvc.CampaignKey{AccountID: c.AccountID, ID: c.ID}
}

func deliveryKey(d *formsvc.Delivery) formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: d.AccountID, ID: d.ID}
}

func webhookKey(h *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: h.AccountID, ID: h.ID}
}
