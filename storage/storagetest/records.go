package storagetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// fullCampaign returns a campaign with all fields set.
func (w *world) fullCampaign(account formsvc.ID) formsvc.Campaign {
	c := w.newCampaign(account)
	c.CampaignInput = formsvc.CampaignInput{
		Title: "All members", Description: "first line\nsecond line", Status: formsvc.CampaignClosed,
		OpensAt: nextDay(), ClosesAt: nextDay().Add(time.Hour),
		Modules: []formsvc.Module{
			{Name: "zeta", Label: "Zeta?", Type: formsvc.TextModule, Required: true, MaxLength: 1_000_000},
			{Name: "alpha", Type: formsvc.ChoiceModule, Options: []string{"b", "a", ""}, Multiple: true},
			{Name: "a b/c~d", Label: "", Type: formsvc.NumberModule},
		},
		Metadata: map[string]string{"b": "1", "a": "", "B": "2"}, EmailOptional: true,
	}
	return c
}

func testTimes(w *world) {
	a := w.addAccount()
	east, west := time.FixedZone("east", 5*3600+1800), time.FixedZone("", -11*3600)
	now := time.Now()
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Time{}.In(east), time.Time{}},
		{time.Unix(0, 0), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		{time.Unix(0, 1000).In(west), time.Date(1970, 1, 1, 0, 0, 0, 1000, time.UTC)},
		{time.Date(2026, 7, 1, 1, 2, 3, 123_456_000, east), time.Date(2026, 6, 30, 19, 32, 3, 123_456_000, time.UTC)},
		{time.Date(2026, 1, 1, 0, 0, 0, 100_000_000, west), time.Date(2026, 1, 1, 11, 0, 0, 100_000_000, time.UTC)},
		// Times finer than a microsecond are truncated, never rounded up.
		{time.Date(2026, 1, 1, 0, 0, 0, 999_999_999, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 999_999_000, time.UTC)},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)},
		{now, now.UTC().Truncate(time.Microsecond)},
	} {
		campaign := w.newCampaign(a.ID)
		campaign.OpensAt, campaign.CreatedAt = c.in, c.in
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, campaign, formsvc.Change{}))
		response := w.newResponse(&campaign)
		response.CompletedAt, response.UpdatedAt = c.in, c.in
		w.must("CreateResponse", w.create(response))
		hook := w.newWebhook(a.ID)
		hook.PreviousUntil = c.in
		gotHook, _, err := w.store.CreateWebhook(w.ctx, hook, formsvc.MaxWebhooks, nil)
		w.must("CreateWebhook", err)
		w.same("PreviousUntil", gotHook.PreviousUntil, c.want)
		gotHook, err = w.store.Webhook(w.ctx, webhookKey(&hook))
		w.must("Webhook", err)
		w.same("PreviousUntil", gotHook.PreviousUntil, c.want)
		gotCampaign, err := w.store.Campaign(w.ctx, campaignKey(&campaign))
		w.must("Campaign", err)
		gotResponse, err := w.store.Response(w.ctx, keyOf(&response))
		w.must("Response", err)
		w.same("OpensAt", gotCampaign.OpensAt, c.want)
		w.same("CompletedAt", gotResponse.CompletedAt, c.want)
		if !c.want.IsZero() { // these two are never zero
			w.same("CreatedAt", gotCampaign.CreatedAt, c.want)
			w.same("UpdatedAt", gotResponse.UpdatedAt, c.want)
		}
	}
}

func testInputsCopied(w *world) {
	key := w.newKey("")
	a := w.addAccount(key)
	c := w.fullCampaign(a.ID)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	hook := w.fullWebhook(a.ID, "")
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	r := w.newResponse(&c)
	e := w.newEvent(&r)
	change := formsvc.Change{Events: []formsvc.Event{e}}
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, r, 1, change))
	before := w.snapshot()

	slices.Reverse(key.Permissions)
	slices.Reverse(hook.Events)
	slices.Reverse(hook.Headers)
	spoilCampaign(&c)
	e.Payload[0] = 'X'
	change.Events[0] = formsvc.Event{}
	w.unchanged("the caller changed what it had passed", &before)

	in := w.fullCampaign(a.ID).CampaignInput
	_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
		c.CampaignInput = in
		c.Version++
		return nil
	})
	w.must("UpdateCampaign", err)
	before = w.snapshot()
	spoilCampaign(&formsvc.Campaign{CampaignInput: in})
	w.unchanged("the caller changed what its function had passed", &before)
}

// spoilCampaign changes everything that a copy of a campaign could share with it.
func spoilCampaign(c *formsvc.Campaign) {
	c.Modules[1].Options[0] = "spoiled"
	c.Modules[0].Name = "spoiled"
	clear(c.Metadata)
}

func (w *world) newComment(r *formsvc.Response) formsvc.Comment {
	id, at := w.next()
	return formsvc.Comment{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Body: "comment " + string(id),
		Author: "Grace", CreatedAt: at,
	}
}

// createComment stores a comment, with events.
func (w *world) createComment(c formsvc.Comment, events ...formsvc.Event) error {
	return w.store.CreateComment(w.ctx, c, formsvc.Change{Events: events})
}

// addComment adds a comment that raises no event.
func (w *world) addComment(r *formsvc.Response) formsvc.Comment {
	w.Helper()
	c := w.newComment(r)
	w.must("CreateComment", w.createComment(c))
	return c
}

func (w *world) newSignature(r *formsvc.Response) formsvc.Signature {
	id, at := w.next()
	return formsvc.Signature{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID,
		Signer:   formsvc.User{Email: "grace@example.com", FirstName: "Grace", LastName: "Hopper"},
		Provider: "pen", DocumentSHA256: sha256.Sum256([]byte(id)), SignedAt: at.Add(-time.Hour), CreatedAt: at,
	}
}

// createSignature stores a signature, with events.
func (w *world) createSignature(sig formsvc.Signature, events ...formsvc.Event) error {
	_, err := w.store.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
		return formsvc.Change{Events: events}, nil
	})
	return err
}

// addSignature adds a signature that raises no event.
func (w *world) addSignature(r *formsvc.Response) formsvc.Signature {
	w.Helper()
	sig := w.newSignature(r)
	w.must("CreateSignature", w.createSignature(sig))
	return sig
}

func (w *world) newAudit(account formsvc.ID) formsvc.AuditEntry {
	id, at := w.next()
	return formsvc.AuditEntry{
		ID: id, AccountID: account, Actor: "key " + string(id), Action: formsvc.AuditKeyCreated, Target: w.nextID(),
		Details: map[string]string{"name": "n", "": "empty"}, CreatedAt: at,
	}
}

func (w *world) addAudit(account formsvc.ID) formsvc.AuditEntry {
	w.Helper()
	entry := w.newAudit(account)
	w.must("AppendAudit", audit(w.ctx, w.store, entry))
	return entry
}

// fullRecord returns a record with all fields set.
func (w *world) fullRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	id, at := w.next()
	return formsvc.IdempotencyRecord{
		AccountID: account, Key: key, CreatedAt: at,
		Reply: formsvc.Reply{
			Request: keyHash(id), Status: 201, ETag: `"` + string(id) + `"`, Location: "/v1/" + string(id),
			Body: []byte("{\"of\":\"\x00\xff" + string(id) + "\"}"), ResponseID: id,
		},
	}
}

func (w *world) addRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	w.Helper()
	r := w.fullRecord(account, key)
	w.must("Remember", remember(w.ctx, w.store, r))
	return r
}

// wantRecord fails the test unless the record is there.
func (w *world) wantRecord(what string, want *formsvc.IdempotencyRecord) {
	w.Helper()
	got, err := w.store.Recall(w.ctx, want.AccountID, want.Key, want.CreatedAt)
	if err != nil {
		w.Errorf("%s: Recall: %v", what, err)
		return
	}
	w.same(what+": record", got, *want)
}

// noRecord fails the test if the key is taken.
func (w *world) noRecord(what string, account formsvc.ID, key string) {
	w.Helper()
	_, err := w.store.Recall(w.ctx, account, key, start())
	w.wantError(what+": Recall", err, formsvc.ErrNotFound)
}

func deciding[T any](change formsvc.Change) func(T) (formsvc.Change, error) {
	return func(T) (formsvc.Change, error) { return change, nil }
}

func (t *target) response() *formsvc.Response {
	return &formsvc.Response{ID: t[responsePart], AccountID: t[accountPart], CampaignID: t[campaignPart]}
}

// creating returns a call that creates a response of a campaign at version 1.
func (w *world) creating(r formsvc.Response, change formsvc.Change) func(context.Context) error {
	return func(ctx context.Context) error { return w.store.CreateResponse(ctx, r, 1, change) }
}

// fullWebhook returns a webhook with all fields set.
func (w *world) fullWebhook(account, campaign formsvc.ID) formsvc.Webhook {
	hook := w.newWebhook(account)
	hook.Events, hook.CampaignID = webhook.EventTypes()[1:3], campaign
	hook.Previous, hook.PreviousUntil = "the secret before", nextDay()
	hook.Headers = []formsvc.Header{{Name: "X-B", Value: "2"}, {Name: "X-A", Value: "1"}, {Name: "Authorization", Value: "Bearer t"}}
	hook.Disabled, hook.Version, hook.UpdatedAt = true, 7, nextDay().Add(time.Hour)
	return hook
}

func incrementWebhook(w *world, store Store, hook *formsvc.Webhook) error {
	_, err := store.UpdateWebhook(w.ctx, webhookKey(hook), func(hook *formsvc.Webhook) (formsvc.Change, error) {
		n, _ := strconv.Atoi(hook.Previous)
		runtime.Gosched() // a store that interleaves here loses updates
		hook.Previous = strconv.Itoa(n + 1)
		hook.Version++
		return formsvc.Change{}, nil
	})
	return err
}

func incrementAccount(w *world, store Store, id formsvc.ID) error {
	_, err := store.UpdateAccount(w.ctx, id, func(a *formsvc.Account) error {
		n, _ := strconv.Atoi(a.Contact)
		runtime.Gosched()
		a.Contact = strconv.Itoa(n + 1)
		return nil
	})
	return err
}

// audit adds an entry to the audit trail.
func audit(ctx context.Context, s formsvc.Store, entry formsvc.AuditEntry) error {
	return s.Note(ctx, formsvc.Change{Audit: &entry})
}

// remember stores an idempotency record.
func remember(ctx context.Context, s formsvc.Store, record formsvc.IdempotencyRecord) error {
	return s.Note(ctx, formsvc.Change{Idempotency: &record})
}

// allEvents returns events of all accounts.
func allEvents(ctx context.Context, s formsvc.Store, q formsvc.EventQuery) (formsvc.EventPage, error) {
	q.AllAccounts = true
	return s.Events(ctx, q)
}

// endSession ends one session.
func endSession(ctx context.Context, s formsvc.Store, account formsvc.ID, hash [sha256.Size]byte) error {
	return s.EndSessions(ctx, formsvc.SessionQuery{AccountID: account, Hash: hash}, formsvc.Change{})
}

// noEvents fails the test if the store has one of the events.
func (w *world) noEvents(what string, events ...formsvc.Event) {
	w.Helper()
	for _, e := range events {
		payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
		w.must("Payloads", err)
		if len(payloads) != 0 {
			w.Errorf("%s: its event exists", what)
		}
	}
}

// pending returns the delivery of an event to a webhook before its first attempt.
func pending(e *formsvc.Event, hook *formsvc.Webhook) formsvc.Delivery {
	return formsvc.Delivery{
		ID: formsvc.DeliveryID(e.ID, hook.ID), AccountID: hook.AccountID, WebhookID: hook.ID, EventID: e.ID,
		Event: e.Type, Test: e.Test, State: formsvc.DeliveryPending, DueAt: e.CreatedAt, CreatedAt: e.CreatedAt,
	}
}

// wantHeard fails the test unless each webhook has exactly one delivery of each event that it subscribes to, and no
// other.
func (w *world) wantHeard(hooks []formsvc.Webhook, events []formsvc.Event) {
	w.Helper()
	for i := range hooks {
		var want []formsvc.Delivery
		for j := range events {
			if hooks[i].Listens(&events[j]) {
				want = append(want, pending(&events[j], &hooks[i]))
			}
		}
		slices.SortFunc(want, func(a, b formsvc.Delivery) int { return cmp.Compare(a.ID, b.ID) })
		w.same("deliveries of "+hooks[i].URL, w.deliveries(&hooks[i]), want)
	}
}

// testEventTwice raises an existing event again. If the store refuses existing events, nothing of the transaction may
// be left; if it accepts them, the rest must be stored.
func testEventTwice(w *world) {
	sc := w.addScene()
	stored, first := w.addResponse(&sc.campaign)
	before := w.snapshot()

	r := w.newResponse(&sc.campaign)
	fresh, again := w.newEvent(&r), first
	if err := w.create(r, fresh, again); err != nil {
		w.unchanged("CreateResponse with an event that exists", &before)
		w.noEvents("CreateResponse with an event that exists", fresh)
	} else {
		w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{first, fresh})
	}
	before = w.snapshot()
	_, err := w.store.UpdateResponse(w.ctx, keyOf(&stored), func(r *formsvc.Response) (formsvc.Change, error) {
		r.Status = "changed"
		r.Version++
		fresh = w.newEvent(r)
		return formsvc.Change{Events: []formsvc.Event{fresh, again}}, nil
	})
	if err != nil {
		w.unchanged("UpdateResponse with an event that exists", &before)
		w.noEvents("UpdateResponse with an event that exists", fresh)
	}
}

// testAddresses filters by an address whose letters differ in case from those that were stored.
func testAddresses(w *world) {
	sc := w.addScene()
	for _, email := range []string{"ada@example.com", "Ada@Example.com", "ADA@EXAMPLE.COM", "ada@example.org"} {
		r := w.newResponse(&sc.campaign)
		r.User.Email = email
		w.must("CreateResponse", w.create(r))
	}
	for _, c := range []struct {
		email   string
		anyCase bool
		want    int
	}{{"ada@example.com", false, 1}, {"aDA@eXAMPLE.com", false, 0}, {"aDA@eXAMPLE.com", true, 3}} {
		page, err := w.store.Responses(w.ctx, formsvc.ResponseQuery{
			AccountID: sc.account.ID, CampaignID: sc.campaign.ID, Filter: formsvc.ResponseFilter{Email: c.email, AnyCase: c.anyCase},
			Page: formsvc.PageQuery{Limit: 10},
		})
		w.must("Responses", err)
		w.same("responses of "+c.email, []int{len(page.Items), int(page.Total)}, []int{c.want, c.want})
	}
}
