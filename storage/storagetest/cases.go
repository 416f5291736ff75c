package storagetest

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// testImport imports responses, some of which exist, and again. Counts, lists and deliveries are those of created ones.
func testImport(w *world) {
	sc := w.addScene()
	old, _ := w.addResponse(&sc.campaign)
	list := make([]formsvc.NewResponse, 300)
	for i := range list {
		r := w.newResponse(&sc.campaign)
		if r.Status = formsvc.StatusPending; i%3 == 0 {
			r.Status = "confirmed"
		}
		r.ID = formsvc.DeliveryID(idAt(r.CreatedAt.Add(-100*time.Hour), 1), r.ID)
		r.CreatedAt, r.UpdatedAt = r.CreatedAt.Add(-100*time.Hour), r.CreatedAt.Add(-50*time.Hour)
		list[i] = formsvc.NewResponse{Response: r, Events: []formsvc.Event{w.newEvent(&r)}}
	}
	list[1].Response.Reference, list[2].Response.ID = old.Reference, list[0].Response.ID
	list[4].Response.Reference = list[3].Response.Reference
	for i, want := range []int{297, 0} {
		n := must(w.store.ImportResponses(w.ctx, sc.campaign.Key(), 1, list, 0))(w, "ImportResponses")
		if n != want {
			w.Errorf("import %d added %d responses, want %d", i, n, want)
		}
	}
	w.wantCount(sc, 298)
	w.same("an imported response", must(w.store.Response(w.ctx, list[5].Response.Key()))(w, "Response"), list[5].Response)
	counts := must(w.store.ResponseCounts(w.ctx, sc.campaign.Key()))(w, "ResponseCounts")
	w.same("counts", counts, map[string]int64{formsvc.StatusPending: 198, "confirmed": 100})
	waiting := must(w.store.Waiting(w.ctx, formsvc.WebhookKey{AccountID: sc.account.ID, ID: sc.hook.ID}, 1000))(w, "Waiting")
	w.same("deliveries", waiting, int64(298))
	more := []formsvc.NewResponse{{Response: w.newResponse(&sc.campaign)}}
	w.wantError("with another version", errorOf(w.store.ImportResponses(w.ctx, sc.campaign.Key(), 2, more, 0)), formsvc.ErrStale)
	nowhere := formsvc.CampaignKey{AccountID: sc.account.ID, ID: w.nextID()}
	w.wantError("to no campaign", errorOf(w.store.ImportResponses(w.ctx, nowhere, 1, more, 0)), formsvc.ErrNotFound)
	w.wantError("beyond the limit", errorOf(w.store.ImportResponses(w.ctx, sc.campaign.Key(), 1, more, 298)), formsvc.ErrLimit)
	w.check("up to the limit", errorOf(w.store.ImportResponses(w.ctx, sc.campaign.Key(), 1, more, 299)))
	create := func() error {
		return w.store.CreateResponse(w.ctx, w.newResponse(&sc.campaign), 1, formsvc.Change{Limit: 299})
	}
	w.wantError("CreateResponse beyond the limit", create(), formsvc.ErrLimit)
	w.must("DeleteResponse", errorOf(w.store.DeleteResponse(w.ctx, old.Key(), nil)))
	w.check("CreateResponse up to the limit", create())
}

// testDeletedAccount deletes an account in small steps: its access, and once it has no campaigns, all the rest.
func testDeletedAccount(w *world) {
	w.addTarget()
	before, at := w.snapshot(), w.addTarget()
	account, _ := w.store.Account(w.ctx, at[accountPart])
	deleted := func() formsvc.Erased {
		return must(w.store.DeleteAccount(w.ctx, account.ID, 1))(w, "DeleteAccount")
	}
	for range 3 {
		w.same("what is deleted of an account with a campaign", deleted(), formsvc.Erased{})
	}
	w.wantError("SessionByHash", errorOf(w.store.SessionByHash(w.ctx, keyHash(account.ID))), formsvc.ErrNotFound)
	w.wantError("KeyByHash", errorOf(w.store.KeyByHash(w.ctx, keyHash(at[keyPart]))), formsvc.ErrNotFound)

	page := must(w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: account.ID, CampaignID: at[campaignPart]}))(w, "Responses")
	for i := range page.Items {
		w.must("DeleteResponse", errorOf(w.store.DeleteResponse(w.ctx, page.Items[i].Key(), nil)))
	}
	w.must("DeleteCampaign", w.store.DeleteCampaign(w.ctx, at.campaign(), nil))
	var sum formsvc.Erased
	for n := 0; !sum.Account && n < 100; n++ {
		out := deleted()
		sum.Account, sum.Events = out.Account, sum.Events+out.Events
	}
	w.same("what was deleted", sum, formsvc.Erased{Account: true, Events: 2})
	w.unchanged("the deletion of an account", &before)
	for _, c := range calls() {
		items, err := c.do(w.ctx, w, at)
		if slices.Contains(c.uses, accountPart) && (items > 0 || c.none != (err == nil)) {
			w.Errorf("%s of a deleted account: %d items, error %v", c.name, items, err)
		}
	}
	w.wantError("Commit", w.store.Commit(w.ctx, formsvc.Change{Idempotency: new(w.newRecord(account.ID, "k"))}), formsvc.ErrNotFound)
	account.ID = w.nextID()
	w.must("CreateAccount with a free name", w.store.CreateAccount(w.ctx, account, nil, none))
}

// testEventTwice raises an existing event again. If the store refuses existing events, nothing of the write may be left.
func testEventTwice(w *world) {
	sc := w.addScene()
	stored, first := w.addResponse(&sc.campaign)
	for what, write := range map[string]func(fresh formsvc.Event) error{
		"CreateResponse": func(fresh formsvc.Event) error { return w.create(w.newResponse(&sc.campaign), fresh, first) },
		"UpdateResponse": func(fresh formsvc.Event) error { return w.update(w.ctx, stored.Key(), fresh, first) },
	} {
		before, fresh := w.snapshot(), w.newEvent(&stored)
		if err := write(fresh); err != nil {
			w.unchanged(what+" with an event that exists", &before)
			w.noEvents(what+" with an event that exists", fresh)
		}
	}
}

// testEventPerFile changes a response with an event for each of its files. If one of them can't be stored, nothing is.
func testEventPerFile(w *world) {
	sc := w.addScene()
	r, first := w.addResponse(&sc.campaign)
	other, _ := w.addResponse(&sc.campaign)
	files := []formsvc.File{w.newFile(&r), w.newFile(&other), w.newFile(&r)}
	for _, f := range files {
		w.must("CreateFile", w.createFile(w.ctx, f))
	}
	update := func(events []formsvc.Event, perFile func(*formsvc.File) formsvc.Event) error {
		change := formsvc.Change{Events: events, PerFile: perFile}
		return rewrite(w.ctx, w.store.UpdateResponse, r.Key(), change, func(r *formsvc.Response) { r.Version++ })
	}
	before, fresh := w.snapshot(), w.newEvent(&r)
	if update([]formsvc.Event{fresh}, func(*formsvc.File) formsvc.Event { return first }) != nil {
		w.unchanged("UpdateResponse with an event for a file that exists", &before)
		w.noEvents("UpdateResponse with an event for a file that exists", fresh)
	}
	begin, end, made := w.newEvent(&r), w.newEvent(&r), map[formsvc.ID]formsvc.Event{}
	w.must("UpdateResponse", update([]formsvc.Event{begin, end}, func(f *formsvc.File) formsvc.Event {
		if len(f.Blocks) > 0 {
			w.Errorf("the file has its blocks")
		}
		e := w.newEvent(&r)
		e.Payload = []byte(`"` + f.Name + `"`)
		made[f.ID] = e
		return e
	}))
	about := must(w.store.EventsAbout(w.ctx, r.Key(), 10))(w, "EventsAbout")
	w.same("events of a response with two files", about, []formsvc.Event{first, begin, made[files[0].ID], made[files[2].ID], end})
	waiting := must(w.store.Waiting(w.ctx, formsvc.WebhookKey{AccountID: sc.account.ID, ID: sc.hook.ID}, 100))(w, "Waiting")
	w.same("deliveries of these events", waiting, int64(6))
}

// testResult recalls a response that its idempotent call created, as it was then, or erased.
func testResult(w *world) {
	resultUntilDeleted(w)
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	record := w.newReply(&r, "k")
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, r, 1, formsvc.Change{Idempotency: record}))
	w.must("UpdateResponse", w.update(w.ctx, r.Key()))
	w.must("Erase", errorOf(w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: sc.account.ID, RepliesOf: []formsvc.ID{r.ID}})))
	w.must("UpdateResponse", w.update(w.ctx, r.Key()))
	got := must(w.store.Recall(w.ctx, sc.account.ID, "k", start()))(w, "Recall")
	w.same("Recall of an erased result", got, *record)
}

func resultUntilDeleted(w *world) {
	sc := w.addScene()
	r := w.newResponse(&sc.campaign)
	want := *w.newReply(&r, "k")
	record := want
	want.Response = &r
	for what, change := range []func() error{
		func() error { return w.store.CreateResponse(w.ctx, r, 1, formsvc.Change{Idempotency: &record}) },
		func() error { return w.update(w.ctx, r.Key()) },
		func() error { return w.update(w.ctx, r.Key()) },
		func() error {
			want.Response = nil
			return errorOf(w.store.DeleteResponse(w.ctx, r.Key(), nil))
		},
	} {
		w.must("change", change())
		w.same("Recall after change "+strconv.Itoa(what), must(w.store.Recall(w.ctx, sc.account.ID, "k", start()))(w, "Recall"), want)
	}
}

// testInputsCopied changes every record after it was stored.
func testInputsCopied(w *world) {
	for _, x := range w.caller(w.ctx, w.addTarget()).writes() {
		record := x.build()
		w.must(x.name, x.write(record))
		before := w.snapshot()
		spoil(reflect.ValueOf(record))
		w.unchanged("the caller changed what it passed to "+x.name, &before)
	}
}

// manyFileIDs passes more identifiers than fit one statement of some databases.
func manyFileIDs(w *world) any {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	ids := make([]formsvc.ID, 35_000)
	for i := range ids {
		ids[len(ids)-1-i] = w.nextID()
	}
	for i := 17; i < len(ids); i += 3_000 {
		f := w.newFile(&r)
		f.ID = ids[i]
		w.must("CreateFile", w.createFile(w.ctx, f))
	}
	unknown := must(w.store.UnknownFiles(w.ctx, ids))(w, "UnknownFiles")
	barred := must(w.store.BarFiles(w.ctx, ids[:3_500]))(w, "BarFiles")
	again := must(w.store.UnknownFiles(w.ctx, ids))(w, "UnknownFiles")
	return [][]formsvc.ID{unknown, barred, again}
}

// manyErased erases more responses than fit one statement, of several campaigns.
func manyErased(w *world) any {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	e := formsvc.EraseQuery{AccountID: sc.account.ID}
	for _, c := range []*formsvc.Campaign{&second, &sc.campaign} {
		e.Responses = append(e.Responses, mapped(w.addResponses(c, 150), (*formsvc.Response).Key)...)
	}
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	e.Responses = append(e.Responses[10:], e.Responses[20]) // ten stay, and one is named twice
	return must(w.store.Erase(w.ctx, e))(w, "Erase")
}

// testIdentity also reopens the store, if it can be.
func testIdentity(w *world) {
	var ids []formsvc.ID
	stores := []Store{w.store, w.open(w.T)}
	if w.reopen != nil {
		stores = append(stores, w.reopen(w.T, w.store))
	}
	for _, s := range stores {
		id := must(s.Identity(w.ctx))(w, "Identity")
		if _, ok := formsvc.ParseID(string(id)); !ok {
			w.Errorf("the identity is %q, want an ID", id)
		}
		ids = append(ids, id)
	}
	if ids[0] == ids[1] || ids[0] != ids[len(ids)-1] && w.reopen != nil {
		w.Errorf("a store, another one, and the same again have the identities %q", ids)
	}
}

// manyQuotas adds to more windows than fit one statement, twice, in different orders.
func manyQuotas(w *world) any {
	list := make([]formsvc.QuotaCount, 450)
	for i := range list {
		list[i] = formsvc.QuotaCount{Subject: w.nextID(), Start: start().Add(time.Duration(i%2) * time.Hour), N: i + 1}
	}
	var got []any
	for range 2 {
		totals := must(w.store.AddQuota(w.ctx, list))(w, "AddQuota")
		use := must(w.store.QuotaUse(w.ctx, list[0].Subject, time.Time{}))(w, "QuotaUse")
		got = append(got, totals, use)
		slices.Reverse(list)
	}
	return got
}

// addTogether adds to the same windows from several stores at once, in different orders: every request is counted, and the
// totals show the order.
func (w *world) addTogether(stores []Store) {
	const adders, rounds = 8, 20
	subjects := []formsvc.ID{w.nextID(), w.nextID()}
	seen := make([][]int, adders)
	together(adders, func(i int) {
		for range rounds {
			list := []formsvc.QuotaCount{{Subject: subjects[i%2], Start: start(), N: 1}, {Subject: subjects[1-i%2], Start: start(), N: 1}}
			totals, err := stores[i%len(stores)].AddQuota(w.ctx, list)
			if w.check("AddQuota", err); err == nil {
				seen[i] = append(seen[i], totals[i%2])
			}
		}
	})
	all := slices.Sorted(slices.Values(slices.Concat(seen...)))
	if len(slices.Compact(all)) != adders*rounds {
		w.Errorf("totals %v of %d requests: some were not counted", all, adders*rounds)
	}
	for _, subject := range subjects {
		use := must(w.store.QuotaUse(w.ctx, subject, start()))(w, "QuotaUse") // as a server that starts within the window
		w.same("use", use, []formsvc.QuotaUse{{Start: start(), Used: adders * rounds}})
		later := must(w.store.QuotaUse(w.ctx, subject, start().Add(time.Second)))(w, "QuotaUse")
		w.same("the use since a second later", later, []formsvc.QuotaUse{})
	}
}
