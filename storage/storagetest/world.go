package storagetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
)

// A world is a test with its store. Its add… methods store the records of its maker, which are the same in every run.
type world struct {
	*testing.T
	maker

	ctx    context.Context
	store  Store
	open   func(testing.TB) Store // opens another empty store
	reopen func(testing.TB, Store) Store
	twin   Store // another store over the same data, in handleTests
}

func newWorld(t *testing.T, open func(testing.TB) Store, reopen func(testing.TB, Store) Store) *world {
	var count atomic.Int64
	return &world{
		T: t, ctx: t.Context(), store: open(t), open: open, reopen: reopen,
		maker: maker{func() (formsvc.ID, time.Time) { // some IDs differ in their time and some only in their last digits
			n := count.Add(1)
			at := start().Add(time.Duration(n) * 701 * time.Microsecond)
			return idAt(at, n), at
		}},
	}
}

// script returns a test that runs the script on the store and on a memory store: both must return the same, and keep the
// same.
func script(run func(w *world) any) func(w *world) {
	return func(w *world) {
		oracle := newWorld(w.T, func(testing.TB) Store { return memory.New() }, nil)
		want := run(oracle)
		w.same("result", run(w), want)
		before := oracle.snapshot()
		w.unchanged("the script", &before)
	}
}

// must ends the test if err isn't nil.
func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// must returns the result of a call, or ends the test if it failed.
func must[T any](result T, err error) func(w *world, what string) T {
	return func(w *world, what string) T {
		w.Helper()
		w.must(what, err)
		return result
	}
}

// mapped returns what of returns of each element of a list.
func mapped[T, R any](list []T, of func(*T) R) (all []R) {
	for i := range list {
		all = append(all, of(&list[i]))
	}
	return all
}

func campaignID(key *formsvc.CampaignKey) formsvc.ID { return key.ID }
func responseID(key *formsvc.ResponseKey) formsvc.ID { return key.ID }
func fileID(key *formsvc.FileKey) formsvc.ID         { return key.ID }

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// check is must for any goroutine.
func (w *world) check(what string, err error) {
	w.Helper()
	if err != nil {
		w.Errorf("%s: %v", what, err)
	}
}

// wantError fails the test unless err is target.
func (w *world) wantError(what string, err, target error) {
	w.Helper()
	if !errors.Is(err, target) {
		w.Errorf("%s: error %v, want %v", what, err, target)
	}
}

// same fails the test unless got equals want, see difference.
func (w *world) same(what string, got, want any) {
	w.Helper()
	if d := difference(what, got, want); d != "" {
		w.Error(d)
	}
}

// snapshot returns everything that can be read from the store.
func (w *world) snapshot() map[string]any {
	w.Helper()
	accounts := must(w.store.Accounts(w.ctx))(w, "Accounts")
	ids := mapped(accounts, func(a *formsvc.Account) formsvc.ID { return a.ID })
	return must(contents(w.ctx, w.store, ids))(w, "contents")
}

// unchanged fails the test unless the store equals the snapshot.
func (w *world) unchanged(what string, before *map[string]any) {
	w.Helper()
	w.same("the store after "+what, w.snapshot(), *before)
}

func (w *world) addAccount() formsvc.Account {
	w.Helper()
	a := w.newAccount()
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, a, nil, none))
	return a
}

func (w *world) addMember(account formsvc.ID) formsvc.Member {
	w.Helper()
	m := w.newMember(account)
	w.must("CreateMember", w.store.CreateMember(w.ctx, m, none))
	return m
}

func (w *world) addCampaign(account formsvc.ID) formsvc.Campaign {
	w.Helper()
	c := w.newCampaign(account)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, none))
	return c
}

func (w *world) addWebhook(account formsvc.ID) formsvc.Webhook {
	w.Helper()
	hook := w.newWebhook(account)
	_, created, err := w.store.CreateWebhook(w.ctx, hook, formsvc.MaxWebhooks, nil)
	w.must("CreateWebhook", err)
	if !created {
		w.Errorf("CreateWebhook: not created, though the account has no such subscription")
	}
	return hook
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

// addResponse adds a response that raises the event "response.created".
func (w *world) addResponse(c *formsvc.Campaign) (formsvc.Response, formsvc.Event) {
	w.Helper()
	r := w.newResponse(c)
	e := w.newEvent(&r)
	w.must("CreateResponse", w.create(r, e))
	return r, e
}

// addResponses adds n responses.
func (w *world) addResponses(c *formsvc.Campaign, n int) []formsvc.Response {
	w.Helper()
	list := make([]formsvc.Response, n)
	for i := range list {
		list[i], _ = w.addResponse(c)
	}
	return list
}

// addTest raises a test event.
func (w *world) addTest(e formsvc.Event) error {
	key := formsvc.WebhookKey{AccountID: e.AccountID, ID: e.To}
	return errorOf(w.store.UpdateWebhook(w.ctx, key, deciding[*formsvc.Webhook](formsvc.Change{Events: []formsvc.Event{e}})))
}

// create stores a response of a campaign at version 1.
func (w *world) create(r formsvc.Response, events ...formsvc.Event) error {
	return w.store.CreateResponse(w.ctx, r, 1, formsvc.Change{Events: events})
}

// update updates a response, with events.
func (w *world) update(ctx context.Context, key formsvc.ResponseKey, events ...formsvc.Event) error {
	return rewrite(ctx, w.store.UpdateResponse, key, formsvc.Change{Events: events}, func(r *formsvc.Response) { r.Version++ })
}

// rewrite edits a record by a method that updates one, which also commits the change.
func rewrite[K, T any](
	ctx context.Context, method func(context.Context, K, func(*T) (formsvc.Change, error)) (T, error), key K, change formsvc.Change, edit func(*T),
) error {
	return errorOf(method(ctx, key, func(record *T) (formsvc.Change, error) {
		edit(record)
		return change, nil
	}))
}

// createFile stores a file, with events.
func (w *world) createFile(ctx context.Context, f formsvc.File, events ...formsvc.Event) error {
	return w.store.CreateFile(ctx, f, deciding[*formsvc.Response](formsvc.Change{Events: events}))
}

func (w *world) createSignature(ctx context.Context, sig formsvc.Signature, events ...formsvc.Event) error {
	_, err := w.store.CreateSignature(ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
		return formsvc.Change{Events: events}, nil
	})
	return err
}

// redeem redeems a link for a session.
func (w *world) redeem(s Store, link *formsvc.Link, session formsvc.Session) error {
	return errorOf(s.RedeemLink(w.ctx, link.Hash, func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) { return session, none, nil }))
}

func deciding[T any](change formsvc.Change) func(T) (formsvc.Change, error) {
	return func(T) (formsvc.Change, error) { return change, nil }
}

// deliveries returns all deliveries of a webhook.
func (w *world) deliveries(hook *formsvc.Webhook) []formsvc.Delivery {
	w.Helper()
	list, _, err := collect(func(q formsvc.PageQuery) (formsvc.Page[formsvc.Delivery], error) {
		return w.store.Deliveries(w.ctx, formsvc.DeliveryQuery{AccountID: hook.AccountID, WebhookID: hook.ID, Page: q})
	})
	w.must("Deliveries", err)
	return list
}

// wantCount fails the test unless the campaign has n responses, counts n, and has raised n events.
func (w *world) wantCount(sc *scene, n int) {
	w.Helper()
	c := must(w.store.Campaign(w.ctx, sc.campaign.Key()))(w, "Campaign")
	list, total, err := collect(func(q formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
		return w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, Page: q})
	})
	w.must("Responses", err)
	w.same("counted, total, listed and told of", []int{int(c.ResponseCount), int(total), len(list), len(w.deliveries(&sc.hook))}, []int{n, n, n, n})
}

// noEvents fails the test if the store has one of the events.
func (w *world) noEvents(what string, events ...formsvc.Event) {
	w.Helper()
	for _, e := range events {
		w.wantError(what+": Event", errorOf(w.store.Event(w.ctx, e.AccountID, e.ID)), formsvc.ErrNotFound)
	}
}

// Numbers of concurrent workers and their calls.
const (
	writers = 64
	writes  = 20
)

// together makes n calls concurrently and waits for them.
func together(n int, call func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			call(i)
		})
	}
	close(begin)
	all.Wait()
}

// many runs 16 workers, each with its own random source.
func many(worker func(random *rand.Rand)) {
	together(16, func(i int) { worker(rand.New(rand.NewPCG(14, uint64(i)))) })
}

// A maker builds valid records, in the order of their IDs. next returns the ID and the time of a new one.
type maker struct {
	next func() (formsvc.ID, time.Time)
}

// start returns the time of a world's first record; everything is due a day later.
func start() time.Time   { return time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.UTC) }
func nextDay() time.Time { return start().Add(24 * time.Hour) }

func idAt(t time.Time, n int64) formsvc.ID {
	const node = len("00000000-0000-7000-8000-")
	return formsvc.FloorID(t)[:node] + formsvc.ID(fmt.Sprintf("%012x", n))
}

func keyHash(id formsvc.ID) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }

func (m *maker) nextID() formsvc.ID {
	id, _ := m.next()
	return id
}

func (m *maker) newAccount() formsvc.Account {
	id, at := m.next()
	return formsvc.Account{ID: id, Name: "account " + string(id), CreatedAt: at}
}

func (m *maker) newKey(account formsvc.ID) formsvc.Key {
	id, at := m.next()
	return formsvc.Key{
		ID: id, AccountID: account, Name: "key", Prefix: "formsvc_abc123", Hash: keyHash(id),
		Permissions: []formsvc.Permission{formsvc.CampaignsRead, formsvc.ResponsesWrite}, CreatedAt: at,
	}
}

// newCampaign returns a campaign with all fields set.
func (m *maker) newCampaign(account formsvc.ID) formsvc.Campaign {
	id, at := m.next()
	return formsvc.Campaign{
		ID: id, AccountID: account, FormToken: tokenOf(id), Version: 1, CreatedAt: at, UpdatedAt: at, Views: []formsvc.View{{Name: "New", Query: "status=new"}}, CampaignInput: formsvc.CampaignInput{
			Title: "All members", Description: "first line\nsecond line", Status: formsvc.CampaignOpen, EmailOptional: true, RequireName: true, Workflow: "grants",
			OpensAt: time.Unix(0, 1000), ClosesAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			Modules: []formsvc.Module{
				{Name: "zeta", Label: "Zeta?", Type: formsvc.TextModule, Required: true, MaxLength: 1_000_000},
				{Name: "alpha", Type: formsvc.ChoiceModule, Options: []string{"b", "a", ""}, Labels: map[string]string{"b": "Bee", "": " "}, Multiple: true},
				{Name: "beta", Type: formsvc.LongTextModule, Help: "Help", Placeholder: "e.g. b", ShowIf: &formsvc.Condition{Module: "alpha", Equals: []string{"b", ""}}},
				{Name: "eta", Type: formsvc.RatingModule, Min: "1", Max: "5", MinLabel: "Bad", MaxLabel: "Good"},
				{Name: "theta", Type: formsvc.TextModule, Hidden: true, Default: []string{"web"}},
			},
			Form: formsvc.Form{
				Enabled: true, Description: "About", SuccessMessage: "Thanks", RedirectURL: "https://example.com/", AllowedOrigins: []string{"http://b", "http://a"},
				Texts: formsvc.FormTexts{Button: "Go", ThanksTitle: "Done", Closed: "Over", Full: "Full"}, Prefill: []string{"zeta", "email"},
			},
			Metadata: map[string]string{"b": "1", "a": "", "B": "2"},
		},
	}
}

// tokenOf returns the form token of a new campaign.
func tokenOf(id formsvc.ID) string { return "form " + string(id) }

func (m *maker) newResponse(c *formsvc.Campaign) formsvc.Response {
	id, at := m.next()
	return formsvc.Response{
		ID: id, AccountID: c.AccountID, CampaignID: c.ID, Reference: "R-" + string(id[24:]), Status: formsvc.StatusPending,
		User:    formsvc.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "q", Value: []string{"yes"}}), Metadata: formsvc.NewMetadata(map[string]string{"crm": "1"}), Version: 1, CreatedAt: at, UpdatedAt: at,
	}
}

func (m *maker) newFile(r *formsvc.Response) formsvc.File {
	id, at := m.next()
	return formsvc.File{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Name: "scan.pdf", ContentType: "application/pdf",
		Module: "q", Size: 5, SHA256: keyHash(id), Blocks: []byte{0, 1, 0xfe, 0xff}, CreatedAt: at,
	}
}

func (m *maker) newComment(r *formsvc.Response) formsvc.Comment {
	id, at := m.next()
	return formsvc.Comment{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Body: "comment", Author: "Grace", CreatedAt: at,
	}
}

func (m *maker) newSignature(r *formsvc.Response) formsvc.Signature {
	id, at := m.next()
	return formsvc.Signature{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Provider: "pen", DocumentSHA256: keyHash(id),
		Signer: formsvc.User{Email: "grace@example.com", FirstName: "Grace", LastName: "Hopper"}, SignedAt: at.Add(-time.Hour), CreatedAt: at,
	}
}

// newWebhook returns a webhook with all fields set, which subscribes to everything.
func (m *maker) newWebhook(account formsvc.ID) formsvc.Webhook {
	id, at := m.next()
	return formsvc.Webhook{
		ID: id, AccountID: account, URL: "https://example.com/" + string(id), Events: webhook.EventTypes(),
		Secret: "secret of " + string(id), Previous: "the secret before", PreviousUntil: nextDay(), Version: 1, CreatedAt: at, UpdatedAt: at,
		Headers: []formsvc.Header{{Name: "X-B", Value: "2"}, {Name: "X-A", Value: "1"}, {Name: "Authorization", Value: "Bearer t"}},
	}
}

// newEvent returns an event; every other one has a trace.
func (m *maker) newEvent(r *formsvc.Response) formsvc.Event {
	id, at := m.next()
	e := formsvc.Event{
		ID: id, AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Type: webhook.ResponseCreated,
		Payload: []byte(`{"id":"` + string(id) + `"}`), CreatedAt: at,
	}
	if id[len(id)-1]%2 != 0 {
		e.TraceParent = "00-" + strings.ReplaceAll(string(id), "-", "") + "-0000" + string(id[24:]) + "-01"
	}
	return e
}

// newTestEvent returns a test event about a campaign and a response that don't exist.
func (m *maker) newTestEvent(to formsvc.WebhookKey) formsvc.Event {
	e := m.newEvent(&formsvc.Response{ID: m.nextID(), AccountID: to.AccountID, CampaignID: m.nextID()})
	e.Test, e.To = true, to.ID
	return e
}

func (m *maker) newAudit(account formsvc.ID) formsvc.AuditEntry {
	id, at := m.next()
	return formsvc.AuditEntry{
		ID: id, AccountID: account, Actor: "key " + string(id), Action: formsvc.AuditKeyCreated, Target: id,
		Details: map[string]string{"name": "é", "": "empty"}, CreatedAt: at,
	}
}

func (m *maker) newRecord(account formsvc.ID, key string) formsvc.IdempotencyRecord {
	id, at := m.next()
	return formsvc.IdempotencyRecord{
		AccountID: account, Key: key, CreatedAt: at,
		Request: keyHash(id), Result: []byte("{\"of\":\"\x00\xff" + string(id) + "\"}"), ResponseID: id,
	}
}

// newReply returns the record of the call that creates a response.
func (m *maker) newReply(r *formsvc.Response, key string) *formsvc.IdempotencyRecord {
	record := m.newRecord(r.AccountID, key)
	record.Result, record.ResponseID, record.CreatedAt = nil, r.ID, r.CreatedAt
	return &record
}

// newMember returns a member with all fields set but RemovedAt.
func (m *maker) newMember(account formsvc.ID) formsvc.Member {
	id, at := m.next()
	return formsvc.Member{
		ID: id, AccountID: account, MemberInput: formsvc.MemberInput{Email: string(id) + "@example.com", Name: "Grace", Role: formsvc.Admin},
		Password: "$argon2id$", Issuer: "https://id.example", Subject: string(id), Epoch: 2, InvitedUntil: at.Add(time.Hour),
		JoinedAt: at, SignedInAt: at.Add(time.Minute), Version: 1, CreatedAt: at, UpdatedAt: at,
	}
}

func (m *maker) newLink(account formsvc.ID) formsvc.Link {
	id, at := m.next()
	return formsvc.Link{
		ID: id, AccountID: account, MemberID: id, Epoch: 3, Hash: keyHash(id), Code: keyHash(id[1:]), CreatedAt: at, ExpiresAt: at.Add(time.Minute),
	}
}

func (m *maker) newSession(account formsvc.ID) formsvc.Session {
	id, at := m.next()
	return formsvc.Session{
		ID: id, AccountID: account, Epoch: 2, Hash: keyHash(id), Way: formsvc.SignedInByLink, Device: "Firefox",
		CreatedAt: at, LastUsedAt: at.Add(time.Second), ExpiresAt: at.Add(time.Minute),
	}
}

// recordOf returns a response of which only the key is known.
func recordOf(k formsvc.ResponseKey) *formsvc.Response {
	return &formsvc.Response{ID: k.ID, AccountID: k.AccountID, CampaignID: k.CampaignID}
}

func webhookKey(h *formsvc.Webhook) formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: h.AccountID, ID: h.ID}
}
