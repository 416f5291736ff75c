package storagetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func listTests() []test {
	return []test{
		{"whole lists by ID", testWholeLists},
		{"every page by cursor and offset", testPages},
		{"default and largest page", testPageSizes},
		{"rows added between pages", testPagesWhileAdding},
		{"rows added concurrently", testPagesWhileRacing},
		{"lists without a total", testNoTotal},
		{"deliveries without a total", testDeliveriesNoTotal},
		{"many pending deliveries", testManyPending},
		{"pages end at a byte limit", testMaxBytes},
		{"pages of campaigns and comments end at a byte limit", testSizedPages},
	}
}

// A lister is one of the lists with pages.
type lister struct {
	name  string
	add   func(id formsvc.ID) formsvc.ID // adds a row with an ID derived from id, and returns it
	fetch func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error)
}

// listers returns every paged list of a new account. Other accounts have rows too.
func (w *world) listers() []lister {
	w.Helper()
	sc, other := w.addScene(), w.addScene()
	second := w.addCampaign(sc.account.ID)
	for range 3 {
		w.addResponse(&other.campaign)
		w.addResponse(&second)
	}
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	hook := w.addWebhook(sc.account.ID)
	failing := w.addScene()
	return []lister{
		w.campaignLister(w.addAccount().ID), w.foundCampaignLister(), w.responseLister(&sc.campaign), w.deliveryLister(&second, &hook, ""),
		w.deliveryLister(&failing.campaign, &failing.hook, formsvc.DeliveryFailed), w.noticeLister(w.addScene(), false),
		w.noticeLister(w.addScene(), true), w.fileLister(&other.campaign), w.commentLister(&other.campaign),
		w.signatureLister(&other.campaign),
	}
}

func (w *world) campaignLister(account formsvc.ID) lister {
	return lister{
		name: "Campaigns",
		add: func(id formsvc.ID) formsvc.ID {
			c := w.newCampaign(account)
			c.ID = id
			w.check("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: account, Page: q})
			return ids(&page, func(c *formsvc.Campaign) formsvc.ID { return c.ID }), page.Total, page.More, err
		},
	}
}

// foundCampaignLister lists the campaigns that match a search. Others lie between them.
func (w *world) foundCampaignLister() lister {
	w.Helper()
	account := w.addAccount().ID
	add := func(id formsvc.ID, title string) {
		c := w.newCampaign(account)
		c.ID, c.Title = id, title
		w.check("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	}
	return lister{
		name: "Campaigns found",
		add: func(id formsvc.ID) formsvc.ID {
			add(w.nextID(), "Visitors' books")
			add(id, "A GUEST book")
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: account, Search: "gueST", Page: q})
			return ids(&page, func(c *formsvc.Campaign) formsvc.ID { return c.ID }), page.Total, page.More, err
		},
	}
}

func (w *world) responseLister(c *formsvc.Campaign) lister {
	return lister{
		name: "Responses",
		add: func(id formsvc.ID) formsvc.ID {
			r := w.newResponse(c)
			r.ID = id
			w.check("CreateResponse", w.create(r))
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, Page: q})
			return ids(&page, func(r *formsvc.Response) formsvc.ID { return r.ID }), page.Total, page.More, err
		},
	}
}

// fileLister lists the files of a new response. Another response has files too.
func (w *world) fileLister(c *formsvc.Campaign) lister {
	w.Helper()
	r, _ := w.addResponse(c)
	other, _ := w.addResponse(c)
	return lister{
		name: "Files",
		add: func(id formsvc.ID) formsvc.ID {
			f := w.newFile(&r)
			f.ID = id
			w.check("CreateFile", w.createFile(f))
			w.check("CreateFile", w.createFile(w.newFile(&other)))
			return id
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Files(w.ctx, formsvc.FileQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
			return ids(&page, func(f *formsvc.File) formsvc.ID { return f.ID }), page.Total, page.More, err
		},
	}
}

// deliveryLister lists the deliveries in that state. Others lie between them.
func (w *world) deliveryLister(c *formsvc.Campaign, hook *formsvc.Webhook, state formsvc.DeliveryState) lister {
	return lister{
		name: "Deliveries " + string(state),
		add: func(id formsvc.ID) formsvc.ID {
			r := w.newResponse(c)
			e := w.newEvent(&r)
			e.ID = id
			w.check("CreateResponse", w.create(r, e))
			if state == formsvc.DeliveryFailed {
				w.attend(hook, nextDay(), delivery.Failed)
				for _, result := range []delivery.Result{delivery.Delivered, delivery.Released} {
					w.addResponse(c)
					w.attend(hook, nextDay(), result)
				}
			}
			return formsvc.DeliveryID(e.ID, hook.ID)
		},
		fetch: func(q formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			page, err := w.store.Deliveries(w.ctx, formsvc.DeliveryQuery{
				AccountID: hook.AccountID, WebhookID: hook.ID, State: state, Page: q,
			})
			return ids(&page, func(d *formsvc.Delivery) formsvc.ID { return d.ID }), page.Total, page.More, err
		},
	}
}

// noticeLister lists the notices of an account, or those of one webhook among
// others.
func (w *world) noticeLister(sc *scene, ofWebhook bool) lister {
	w.Helper()
	q := formsvc.NoticeQuery{AccountID: sc.account.ID}
	if ofWebhook {
		q.WebhookID = sc.hook.ID
		w.addWebhook(sc.account.ID)
	}
	return lister{
		name: "Notices " + string(q.WebhookID),
		add: func(id formsvc.ID) formsvc.ID {
			r := w.newResponse(&sc.campaign)
			e := w.newEvent(&r)
			e.ID = id
			w.check("CreateResponse", w.create(r, e))
			claims := w.take(nextDay(), w.everyShare()...)
			for i := range claims {
				w.finish(outcome(&claims[i], delivery.Failed, nextDay()))
			}
			return formsvc.DeliveryID(e.ID, sc.hook.ID)
		},
		fetch: func(page formsvc.PageQuery) ([]formsvc.ID, int64, bool, error) {
			q := q
			q.Page = page
			got, err := w.store.Notices(w.ctx, q)
			return ids(&got, func(n *formsvc.Notice) formsvc.ID { return n.DeliveryID }), got.Total, got.More, err
		},
	}
}

func ids[T any](page *formsvc.Page[T], id func(*T) formsvc.ID) []formsvc.ID {
	list := make([]formsvc.ID, len(page.Items))
	for i := range page.Items {
		list[i] = id(&page.Items[i])
	}
	return list
}

// check is must for any goroutine.
func (w *world) check(what string, err error) {
	w.Helper()
	if err != nil {
		w.Errorf("%s: %v", what, err)
	}
}

// randomID returns an ID with a time within a second of nextDay.
func randomID(random *rand.Rand) formsvc.ID {
	return idAt(nextDay().Add(time.Duration(random.IntN(1_000))*time.Millisecond), random.Int64N(1<<48))
}

// expect returns the page for q from rows in ascending order.
func expect(rows []formsvc.ID, q formsvc.PageQuery) (page []formsvc.ID, more bool) {
	rows = slices.Clone(rows)
	if !q.Ascending {
		slices.Reverse(rows)
	}
	skip := max(q.Offset, 0)
	if q.After != "" {
		skip = 0
		for skip < len(rows) && (rows[skip] == q.After || (rows[skip] < q.After) == q.Ascending) {
			skip++
		}
	}
	rows = rows[min(skip, len(rows)):]
	limit := q.Limit
	if limit <= 0 {
		limit = formsvc.DefaultLimit
	}
	limit = min(limit, formsvc.MaxLimit)
	return rows[:min(limit, len(rows))], len(rows) > limit
}

func (w *world) wantPage(l *lister, rows []formsvc.ID, q formsvc.PageQuery) {
	w.Helper()
	want, wantMore := expect(rows, q)
	got, total, more, err := l.fetch(q)
	what := fmt.Sprintf("%s %+v", l.name, q)
	w.must(what, err)
	if total != int64(len(rows)) || more != wantMore {
		w.Errorf("%s: total %d, more %t; want %d, %t", what, total, more, len(rows), wantMore)
	}
	w.same(what, got, want)
}

// testWholeLists adds records in random order and reads them in the order of their IDs.
func testWholeLists(w *world) {
	sc := w.addScene()
	accounts := []formsvc.ID{sc.account.ID}
	hooks := []formsvc.ID{sc.hook.ID}
	var keys []formsvc.ID
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		a, key, hook := w.newAccount(), w.newKey(sc.account.ID), w.newWebhook(sc.account.ID)
		a.ID, key.ID, hook.ID = randomID(random), randomID(random), randomID(random)
		w.must("CreateAccount", w.store.CreateAccount(w.ctx, a, nil, formsvc.Change{}))
		w.must("CreateKey", w.store.CreateKey(w.ctx, key, formsvc.Change{}))
		w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
		accounts, keys, hooks = append(accounts, a.ID), append(keys, key.ID), append(hooks, hook.ID)
	}
	slices.Sort(accounts)
	slices.Sort(keys)
	slices.Sort(hooks)
	gotAccounts, err := w.store.Accounts(w.ctx)
	w.must("Accounts", err)
	gotKeys, err := w.store.Keys(w.ctx, sc.account.ID)
	w.must("Keys", err)
	gotHooks, err := w.store.Webhooks(w.ctx, sc.account.ID)
	w.must("Webhooks", err)
	w.same("accounts", ids(&formsvc.Page[formsvc.Account]{Items: gotAccounts},
		func(a *formsvc.Account) formsvc.ID { return a.ID }), accounts)
	w.same("keys", ids(&formsvc.Page[formsvc.Key]{Items: gotKeys}, func(k *formsvc.Key) formsvc.ID { return k.ID }), keys)
	w.same("webhooks", ids(&formsvc.Page[formsvc.Webhook]{Items: gotHooks},
		func(h *formsvc.Webhook) formsvc.ID { return h.ID }), hooks)
}

func testPages(w *world) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, l := range w.listers() {
		var rows []formsvc.ID
		w.wantPage(&l, rows, formsvc.PageQuery{})
		for range 23 {
			rows = append(rows, l.add(randomID(random)))
		}
		slices.Sort(rows)
		after := []formsvc.ID{
			rows[0], rows[1], rows[11], rows[21], rows[22],
			formsvc.FloorID(start().Add(-time.Hour)), formsvc.FloorID(nextDay().Add(time.Hour)), // before all and after all rows
			randomID(random), randomID(random), // between two rows
		}
		limits, offsets := []int{-1, 0, 1, 7, 22, 23, 24, 2 * formsvc.MaxLimit}, []int{-3, 0, 1, 7, 22, 23, 100, math.MaxInt32}
		for _, ascending := range []bool{false, true} {
			for i, limit := range limits {
				for j, offset := range offsets {
					if limit == 7 || (i+j)%2 == 0 { // every limit and every offset, but not every pair
						w.wantPage(&l, rows, formsvc.PageQuery{Limit: limit, Offset: offset, Ascending: ascending})
					}
				}
				for j, id := range after {
					if limit == 7 || (i+j)%3 == 0 {
						w.wantPage(&l, rows, formsvc.PageQuery{Limit: limit, Offset: j, After: id, Ascending: ascending})
					}
				}
			}
		}
	}
}

func testPageSizes(w *world) {
	sc := w.addScene()
	l := w.responseLister(&sc.campaign)
	const n = formsvc.MaxLimit + 5
	rows := make([]formsvc.ID, n)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := worker; i < n; i += 16 {
				rows[i] = l.add(idAt(nextDay(), int64(i)))
			}
		})
	}
	all.Wait()
	for _, limit := range []int{-1, 0, formsvc.MaxLimit, formsvc.MaxLimit + 1, math.MaxInt32} {
		w.wantPage(&l, rows, formsvc.PageQuery{Limit: limit, Ascending: true})
		w.wantPage(&l, rows, formsvc.PageQuery{Limit: limit, After: rows[n-1]})
	}
	w.wantPage(&l, rows, formsvc.PageQuery{Limit: 10, Offset: n - 10})
}

// pageThrough reads a whole list by After. It fails the test unless the list is in order, without duplicates, and has
// all rows.
func (w *world) pageThrough(l *lister, rows []formsvc.ID, ascending bool, between func()) {
	w.Helper()
	q := formsvc.PageQuery{Limit: 7, Ascending: ascending}
	seen := make(map[formsvc.ID]bool)
	for {
		page, _, more, err := l.fetch(q)
		w.must(l.name, err)
		for _, id := range page {
			if seen[id] || q.After != "" && (id > q.After) != ascending {
				w.Fatalf("%s: %s comes after %s, or twice", l.name, id, q.After)
			}
			seen[id] = true
			q.After = id
		}
		if !more {
			break
		}
		if len(page) == 0 {
			w.Fatalf("%s: an empty page says that more follow", l.name)
		}
		between()
	}
	for _, id := range rows {
		if !seen[id] {
			w.Errorf("%s, ascending %t: %s was there all along and never came", l.name, ascending, id)
		}
	}
}

func testPagesWhileAdding(w *world) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, l := range w.listers() {
		for _, ascending := range []bool{true, false} {
			var rows []formsvc.ID
			for range 16 {
				rows = append(rows, l.add(randomID(random)))
			}
			rounds := 0
			w.pageThrough(&l, rows, ascending, func() {
				if rounds++; rounds < 5 {
					for range 3 {
						l.add(randomID(random))
					}
				}
			})
		}
	}
}

func testPagesWhileRacing(w *world) {
	l := w.listers()[1]
	random := rand.New(rand.NewPCG(7, 8))
	var rows []formsvc.ID
	for range 40 {
		rows = append(rows, l.add(randomID(random)))
	}
	var writers sync.WaitGroup
	defer writers.Wait()
	for worker := range uint64(4) {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(9, worker))
			for range 50 {
				l.add(randomID(random))
			}
		})
	}
	for i := range 6 {
		w.pageThrough(&l, rows, i%2 == 0, func() {})
	}
	writers.Wait()
	w.pageThrough(&l, rows, true, func() {})
}
