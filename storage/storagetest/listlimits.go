package storagetest

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// wantListed fails the test unless the store returns the right rows of the campaign for q.
func (w *world) wantListed(rows []formsvc.Response, q formsvc.ResponseQuery) {
	w.Helper()
	matched := make(map[formsvc.ID]formsvc.Response)
	var order []formsvc.ID
	for i := range rows {
		if q.Filter.Match(&rows[i]) {
			matched[rows[i].ID] = rows[i]
			order = append(order, rows[i].ID)
		}
	}
	slices.Sort(order)
	order, more := expect(order, q.Page)
	want := make([]formsvc.Response, len(order))
	size := 0
	for i, id := range order {
		if q.Page.MaxBytes > 0 && size >= q.Page.MaxBytes {
			want, more = want[:i], true
			break
		}
		want[i] = matched[id]
		size += want[i].Size()
	}
	total := int64(len(matched))
	if q.NoTotal {
		total = 0
	}
	got, err := w.store.Responses(w.ctx, q)
	w.must("Responses", err)
	if got.Total != total || got.More != more {
		w.Errorf("Responses %+v: total %d, more %t; want %d, %t", q, got.Total, got.More, total, more)
	}
	w.same("responses", got.Items, want)
}

// testNoTotal reads parts of lists without counting them.
func testNoTotal(w *world) {
	a := w.addAccount()
	c, other, empty := w.addCampaign(a.ID), w.addCampaign(a.ID), w.addCampaign(a.ID)
	random := rand.New(rand.NewPCG(14, 15))
	rows := w.fillCampaign(random, &c, 60)
	w.fillCampaign(random, &other, 20)
	for i := range 300 {
		q := formsvc.ResponseQuery{AccountID: a.ID, CampaignID: c.ID, NoTotal: true}
		q.Page = formsvc.PageQuery{Limit: 1 + random.IntN(70), Ascending: random.IntN(2) == 0}
		if i%2 == 0 {
			q.Filter = randomFilter(random, rows)
		}
		switch random.IntN(4) {
		case 0:
			q.Page.Offset = random.IntN(70)
		case 1:
			q.Page.After = w.nextID() // after all rows
		case 2:
			q.Page.After = pick(random, rows...).ID
		}
		w.wantListed(rows, q)
	}
	none := formsvc.ResponseQuery{AccountID: a.ID, CampaignID: empty.ID, NoTotal: true}
	w.wantListed(nil, none)
	for _, page := range []formsvc.PageQuery{{}, {Ascending: true}, {After: w.nextID()}, {After: rows[0].ID, Ascending: true}} {
		for _, filter := range []formsvc.ResponseFilter{{}, {Status: statuses()}} {
			for _, q := range []formsvc.ResponseQuery{
				{AccountID: a.ID, CampaignID: w.nextID()}, {AccountID: w.addAccount().ID, CampaignID: c.ID},
			} {
				q.Page, q.Filter, q.NoTotal = page, filter, true
				_, err := w.store.Responses(w.ctx, q)
				w.wantError("Responses without a total", err, formsvc.ErrNotFound)
			}
		}
	}
}

// testDeliveriesNoTotal reads parts of the deliveries of a webhook without counting them.
func testDeliveriesNoTotal(w *world) {
	sc, other := w.addScene(), w.addScene()
	random := rand.New(rand.NewPCG(18, 19))
	results := []delivery.Result{delivery.Delivered, delivery.Failed, delivery.Postponed}
	for range 40 {
		w.addResponse(&other.campaign)
		w.addResponse(&sc.campaign)
		if random.IntN(4) > 0 {
			w.attend(&sc.hook, nextDay(), pick(random, results...))
		}
	}
	every := w.deliveries(&sc.hook)
	for range 300 {
		q := formsvc.DeliveryQuery{AccountID: sc.account.ID, WebhookID: sc.hook.ID}
		q.Page = formsvc.PageQuery{Limit: 1 + random.IntN(50), Ascending: random.IntN(2) == 0}
		q.State = pick(random, "", formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed)
		switch random.IntN(4) {
		case 0:
			q.Page.Offset = random.IntN(50)
		case 1:
			q.Page.After = w.nextID() // after all rows
		case 2:
			q.Page.After = pick(random, every...).ID
		}
		want, err := w.store.Deliveries(w.ctx, q)
		w.must("Deliveries", err)
		q.NoTotal = true
		got, err := w.store.Deliveries(w.ctx, q)
		w.must("Deliveries without a total", err)
		want.Total = 0
		w.same("page without a total", got, want)
	}
	for _, key := range []formsvc.WebhookKey{
		{AccountID: sc.account.ID, ID: w.nextID()}, {AccountID: sc.account.ID, ID: other.hook.ID}, {AccountID: w.nextID(), ID: sc.hook.ID},
	} {
		page, err := w.store.Deliveries(w.ctx, formsvc.DeliveryQuery{AccountID: key.AccountID, WebhookID: key.ID, NoTotal: true})
		w.must("Deliveries of an unknown webhook", err)
		w.same("page of an unknown webhook", page, formsvc.Page[formsvc.Delivery]{})
	}
}

// testManyPending lists so many pending deliveries that a store may use another query.
func testManyPending(w *world) {
	sc := w.addScene()
	for i := range 1010 {
		w.addResponse(&sc.campaign)
		if i < 5 {
			w.attend(&sc.hook, nextDay(), delivery.Delivered)
		}
	}
	q := formsvc.DeliveryQuery{AccountID: sc.account.ID, WebhookID: sc.hook.ID, State: formsvc.DeliveryPending}
	for _, q.Page = range []formsvc.PageQuery{
		{Limit: formsvc.MaxLimit}, {Limit: formsvc.MaxLimit, Ascending: true}, {Limit: 10, Offset: 1000}, {Limit: 10, Offset: 1000, Ascending: true},
	} {
		q.NoTotal = false
		want, err := w.store.Deliveries(w.ctx, q)
		w.must("Deliveries", err)
		if want.Total != 1005 {
			w.Errorf("%d deliveries wait, want 1005", want.Total)
		}
		q.NoTotal, want.Total = true, 0
		got, err := w.store.Deliveries(w.ctx, q)
		w.must("Deliveries without a total", err)
		w.same("deliveries that wait", got, want)
	}
}

// testMaxBytes reads pages that end at a byte limit.
func testMaxBytes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	random := rand.New(rand.NewPCG(16, 17))
	var rows []formsvc.Response
	for range 30 {
		r := w.newResponse(&c)
		r.Answers = formsvc.NewAnswers(formsvc.Answer{Name: "text", Value: []string{strings.Repeat("x", random.IntN(5_000))}})
		w.must("CreateResponse", w.create(r))
		rows = append(rows, r)
	}
	for _, bytes := range []int{1, rows[0].Size(), rows[29].Size(), rows[29].Size() + 1, 10_000, 20_000, 1 << 20} {
		for i := range 16 {
			q := formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, NoTotal: i&1 == 0}
			q.Page = formsvc.PageQuery{Limit: 1 + random.IntN(40), Ascending: i&2 == 0, MaxBytes: bytes}
			if i&4 == 0 {
				q.Page.After = pick(random, rows...).ID
			}
			if i&8 == 0 {
				q.Filter.Status = []string{rows[0].Status}
			}
			w.wantListed(rows, q)
		}
	}
}
