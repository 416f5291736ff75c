package storagetest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// seedOnce sets the seed of this process: stores are tested in parallel.
var seedOnce sync.Once

// testModel applies random histories to the store and to a memory store, the oracle. Each call must have the same result
// on both, and both must keep the same in the end. All histories use one store: each has its own accounts, and its own
// range of time. If one fails, rapid prints the shortest such history that it finds. extra is another step, if it isn't nil.
//
// The histories are the same in each run, so that a test that passes goes on passing, unless the build tag long is set.
// Others have other seeds: go test -rapid.seed=2.
func testModel(w *world, checks int, extra func(*model)) {
	seed := flag.Lookup("rapid.seed")
	seedOnce.Do(func() {
		if first := uint64(1); seed.Value.String() == "0" {
			if randomSeed {
				first = rand.Uint64()
			}
			w.check("the seed", seed.Value.Set(strconv.FormatUint(first, 10)))
		}
	})
	w.Logf("-rapid.seed=%s", seed.Value)
	checks = cmp.Or(checks, 60)
	histories, failed := 0, false
	rapid.Check(w.T, func(r *rapid.T) {
		histories++
		if histories > checks && !failed {
			return
		}
		good := false
		m := newModel(w, r, histories)
		defer m.leave()
		defer func() {
			if !good && !failed {
				w.Logf("the first failure: %s", m.failure)
			}
			failed = failed || !good
		}()
		for range 3 { // each has 30 calls on average, see rapid.steps
			m.Repeat(m.actions(extra))
		}
		m.compare()
		good = true
	})
}

// reopen closes the store and opens it again.
func (m *model) reopen() {
	m.world.must("Close", m.world.store.Close())
	m.world.store = m.world.reopen(m.world.T, m.world.store)
	m.stores[subject] = m.world.store
}

// other goes on with the other store over the same data.
func (m *model) other() {
	m.world.store, m.world.twin = m.world.twin, m.world.store
	m.stores[subject] = m.world.store
}

// The indices of a model's stores.
const (
	oracle  = 0
	subject = 1
)

// A model is a history under way. It remembers the identifiers of everything that was ever created, so that calls also
// name what is gone.
type model struct {
	*rapid.T
	maker

	world  *world
	ctx    context.Context
	stores [2]Store
	start  time.Time
	now    time.Time // of the last record
	count  int64     // of identifiers
	err    error     // of the last call

	failure string // how a result differed

	accounts   []formsvc.ID
	keys       []formsvc.Key
	campaigns  []formsvc.CampaignKey
	responses  []formsvc.ResponseKey
	references []string
	files      []formsvc.FileKey
	comments   []formsvc.ID
	signatures []formsvc.ID
	hooks      []formsvc.WebhookKey
	events     []formsvc.Event
	audit      []formsvc.AuditEntry
	links      []formsvc.Link
	sessions   []formsvc.Session
	members    []formsvc.Member
	claims     []held[delivery.Claim]
	digests    []held[formsvc.Digest]
	positions  [][2]formsvc.Cursor
	gone       map[formsvc.ID]bool // responses that were deleted: services never use an identifier again
}

// A held is a lease, whose fencing token each store chooses.
type held[T any] struct {
	of    T
	lease [2]int64
}

func newModel(w *world, r *rapid.T, n int) *model {
	// Histories last less than a thousand hours.
	begin := start().Add(time.Duration(n) * 1000 * time.Hour)
	m := &model{
		T: r, world: w, ctx: w.ctx, stores: [2]Store{memory.New(), w.store}, start: begin, now: begin, gone: make(map[formsvc.ID]bool),
	}
	m.maker = maker{func() (formsvc.ID, time.Time) {
		m.count++
		at := m.tick()
		id := idAt(at, m.count)
		if m.count%3 == 0 { // of another place, and finer than stores keep
			at = at.In(time.FixedZone("", 5400)).Add(999)
		}
		return id, at
	}}
	for i := range prunes(m.stores[subject]) { // what a failed history left
		m.pruneAll(subject, i, begin)
	}
	for range 2 {
		m.settle()
	}
	return m
}

// settle adds an account with a campaign, a response and a webhook.
func (m *model) settle() {
	a := m.newAccount()
	c, w := m.newCampaign(a.ID), m.newWebhook(a.ID)
	r := m.newResponse(&c)
	m.accounts, m.campaigns = append(m.accounts, a.ID), append(m.campaigns, c.Key())
	m.responses, m.references = append(m.responses, r.Key()), append(m.references, r.Reference)
	m.hooks = append(m.hooks, webhookKey(&w))
	m.do("begin", func(s Store, _ int) (any, error) {
		err := errors.Join(s.CreateAccount(m.ctx, a, nil, none), s.CreateCampaign(m.ctx, c, none), s.CreateResponse(m.ctx, r, 1, none))
		_, _, hook := s.CreateWebhook(m.ctx, w, 10, nil)
		return nil, errors.Join(err, hook)
	})
}

// leave removes what other histories would see: claims are made for all accounts.
func (m *model) leave() {
	for _, key := range m.hooks {
		_ = m.stores[subject].DeleteWebhook(m.ctx, key, none)
	}
}

// prunes returns the methods that prune; the last one prunes the oldest records first.
func prunes(s Store) []func(context.Context, time.Time, int) (int, error) {
	return []func(context.Context, time.Time, int) (int, error){s.PruneEvents, s.PruneQuota, s.PruneSessions, s.PruneIdempotency}
}

// pruneAll prunes one kind of records until nothing is left.
func (m *model) pruneAll(store, kind int, before time.Time) {
	for n := 1; n > 0; {
		var err error
		if n, err = prunes(m.stores[store])[kind](m.ctx, before, 50); err != nil {
			m.Fatalf("Prune: %v", err)
		}
	}
}

// tick returns a time after all before. Times that differ by whole seconds are never equal to another one.
func (m *model) tick() time.Time {
	m.now = m.now.Add(701 * time.Microsecond)
	return m.now
}

// errDecided is what a decide function returns that decides against a change.
var errDecided = errors.New("decided against")

func kindOf(err error) error {
	for _, kind := range []error{
		errDecided, formsvc.ErrNotFound, formsvc.ErrLastAdmin, formsvc.ErrConflict, formsvc.ErrStale, formsvc.ErrLimit, formsvc.ErrInvalid, formsvc.ErrRepeated,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// sameKind reports whether two calls failed in the same way. A call that is wrong in two ways may fail with either error:
// with ErrRepeated in place of any other, and with ErrConflict in place of ErrLimit.
func sameKind(a, b error) bool {
	if a == nil || b == nil || errors.Is(a, b) {
		return (a == nil) == (b == nil)
	}
	wrong := []error{a, b}
	return slices.Contains(wrong, formsvc.ErrRepeated) ||
		slices.Contains(wrong, formsvc.ErrConflict) && slices.Contains(wrong, formsvc.ErrLimit)
}

// do makes a call on both stores and compares the results. It returns the oracle's.
func (m *model) do(name string, call func(s Store, i int) (any, error)) any {
	want, wantErr := call(m.stores[oracle], oracle)
	got, err := call(m.stores[subject], subject)
	m.err = wantErr
	wantKind := kindOf(wantErr)
	if !sameKind(kindOf(err), wantKind) {
		m.failure = fmt.Sprintf("%s: error %v, want %v", name, err, wantErr)
		m.Log(m.failure)
		m.Fatalf("%s: another error than the oracle's", name)
	}
	if wantErr == nil {
		m.compareValues(name, got, want)
	}
	m.Logf("%s at %s: %v", name, m.now.Sub(m.start), wantKind)
	spoil(reflect.ValueOf(got))
	return want
}

// compareValues fails the history if the values differ. The message doesn't have the values: rapid repeats a history
// with other identifiers, and its failure must be the same.
func (m *model) compareValues(name string, got, want any) {
	if d := difference(name, got, want); d != "" {
		m.Log(d)
		m.failure = d
		m.Fatalf("%s differs from the oracle's", name)
	}
}

// compare compares everything that the stores keep, and then what they have queued.
func (m *model) compare() {
	m.do("contents", func(s Store, _ int) (any, error) {
		all, err := contents(m.ctx, s, m.accounts)
		if err != nil {
			return nil, err
		}
		return all, m.addHidden(s, all)
	})
	m.now = m.now.Add(500 * time.Hour)
	m.digest(100, 0)
	m.failures(1000)
	for range 2 { // what is due, and then what was leased
		m.now = m.now.Add(100 * time.Hour)
		m.claim(func() (int, bool) { return 100, false })
	}
	for i := range m.links {
		m.redeem(&m.links[i], m.addSession(), false)
	}
}

// addHidden adds what no list has.
func (m *model) addHidden(s Store, all map[string]any) (err error) {
	add := func(what string, id formsvc.ID) func(value any, failed error) {
		return func(value any, failed error) {
			if failed != nil && !errors.Is(failed, formsvc.ErrNotFound) {
				err = failed
			}
			all[what+" "+string(id)] = value
		}
	}
	for i := range m.keys {
		add("key", m.keys[i].ID)(s.KeyByHash(m.ctx, m.keys[i].Hash))
	}
	for i := range m.sessions {
		add("session", m.sessions[i].ID)(s.SessionByHash(m.ctx, m.sessions[i].Hash))
	}
	for i := range m.events {
		add("event", m.events[i].ID)(s.Event(m.ctx, m.events[i].AccountID, m.events[i].ID))
	}
	add("unknown files", "")(s.UnknownFiles(m.ctx, m.fileIDs()))
	for i, account := range m.accounts {
		for _, email := range addresses() {
			add("responses by "+email, account)(s.Responses(m.ctx, formsvc.ResponseQuery{
				AccountID: account, CampaignID: m.campaigns[i].ID, Filter: formsvc.ResponseFilter{Email: email, AnyCase: true},
			}))
			add("signatures by "+email, account)(s.SignaturesBy(m.ctx, account, email, formsvc.PageQuery{Limit: formsvc.MaxLimit}))
		}
		for _, key := range recordKeys() {
			add("record "+key, account)(s.Recall(m.ctx, account, key, time.Time{}))
		}
		add("quota", account)(s.QuotaUse(m.ctx, account, time.Time{}))
	}
	return err
}

// chance is true once in n, and false in the simplest history.
func (m *model) chance(what string, n int) bool {
	return rapid.IntRange(1, n).Draw(m.T, what) == n && n > 1
}

func (m *model) number(what string, low, high int) int {
	return rapid.IntRange(low, high).Draw(m.T, what)
}

// one returns an element of a list, the last one in the simplest history.
func one[T any](m *model, what string, list []T) T {
	return list[len(list)-1-rapid.IntRange(0, len(list)-1).Draw(m.T, what)]
}

// oneOf returns one of the values, the first one in the simplest history.
func oneOf[T any](m *model, what string, values ...T) T {
	return values[rapid.IntRange(0, len(values)-1).Draw(m.T, what)]
}

// oneCampaign returns a campaign, often one of the first, which have more responses.
func (m *model) oneCampaign() formsvc.CampaignKey {
	if m.chance("any campaign", 3) {
		return one(m, "campaign", m.campaigns)
	}
	return oneOf(m, "campaign", m.campaigns[:2]...)
}

// oneResponse returns a response, often one of the newest, which are there.
func (m *model) oneResponse() formsvc.ResponseKey {
	if m.chance("any response", 3) {
		return one(m, "response", m.responses)
	}
	return one(m, "response", m.responses[max(len(m.responses)-3, 0):])
}

// owner returns the account, seldom another one or none.
func (m *model) owner(account formsvc.ID) formsvc.ID {
	if !m.chance("other account", 15) {
		return account
	}
	return oneOf(m, "account", append([]formsvc.ID{"", m.nextID()}, m.accounts...)...)
}

func (m *model) response() formsvc.ResponseKey {
	key := m.oneResponse()
	key.AccountID = m.owner(key.AccountID)
	if m.chance("other campaign", 30) {
		key.CampaignID = one(m, "campaign", m.campaigns).ID
	}
	return key
}

func (m *model) hook() formsvc.WebhookKey {
	key := one(m, "webhook", m.hooks)
	key.AccountID = m.owner(key.AccountID)
	return key
}

// page returns a query for a page of records with these identifiers.
func (m *model) page(ids ...formsvc.ID) formsvc.PageQuery {
	q := formsvc.PageQuery{Limit: m.number("limit", 0, 4), Ascending: m.chance("ascending", 2)}
	switch m.number("from", 0, 3) {
	case 1:
		q.Offset = m.number("offset", 0, 4)
	case 2:
		q.After = m.nextID()
	case 3:
		if len(ids) > 0 {
			q.After = one(m, "after", ids)
		}
	}
	q.MaxBytes = oneOf(m, "bytes", 0, 0, 1, 1000, 2500)
	return q
}

func recordKeys() []string { return []string{"k", "K", "another", "k1", "k2", "k3"} }

// change returns what a call commits along with what it does to the response.
func (m *model) change(r formsvc.ResponseKey) formsvc.Change {
	if r.CampaignID == "" {
		r.CampaignID = m.campaigns[0].ID
	}
	if !slices.Contains(m.accounts, r.AccountID) {
		r.AccountID = m.accounts[0]
	}
	var c formsvc.Change
	for range m.number("events", 0, 2) {
		c.Events = append(c.Events, m.event(r))
	}
	if m.chance("audit", 4) {
		entry := m.newAudit(r.AccountID)
		entry.Action, entry.Target = oneOf[formsvc.AuditAction](m, "action", "a", "b"), r.ID
		if len(m.audit) > 0 && m.chance("taken entry", 8) {
			entry.ID = one(m, "entry", m.audit).ID
		}
		c.Audit, m.audit = &entry, append(m.audit, entry)
	}
	if m.chance("idempotent", 4) {
		record := m.newRecord(r.AccountID, oneOf(m, "key", recordKeys()...))
		record.Refused, record.Result = oneOf(m, "refused", false, true), []byte(`{"e":"`+oneOf(m, "email", addresses()...)+`"}`)
		if record.ResponseID = r.ID; record.Refused || m.chance("about no response", 3) {
			record.ResponseID = ""
		}
		if record.ResponseID != "" && m.chance("the response itself", 2) {
			record.Result = nil // of another call than CreateResponse it is as if it was erased
		}
		c.Idempotency = &record
	}
	return c
}

func (m *model) event(r formsvc.ResponseKey) formsvc.Event {
	e := m.newEvent(recordOf(r))
	e.Type = oneOf(m, "type", webhook.EventTypes()[:3]...)
	e.Payload, e.Confirm = slices.Repeat([]byte{'p'}, m.number("size", 0, 40)), m.chance("confirm", 3)
	m.events = append(m.events, e)
	return e
}

// decide returns a decide function without an error, or one that decides against the change.
func decide[T any](m *model, c formsvc.Change, edit func(T)) func(T) (formsvc.Change, error) {
	var err error
	if m.chance("decide against", 12) {
		err = errDecided
	}
	return func(record T) (formsvc.Change, error) {
		if edit != nil {
			edit(record)
		}
		return c, err
	}
}
