package storagetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func erasureTests() []test {
	return []test{
		{"response and all its records", testEraseResponse},
		{"responses of several campaigns", testEraseCampaigns},
		{"signatures alone", testEraseSignatures},
		{"events alone", testEraseEvents},
		{"delivery in progress", testEraseClaimed},
		{"deliveries of a deleted webhook", testEraseDeletedWebhook},
		{"stored replies are emptied", testEraseAnswers},
		{"records of others and unknown ones are kept", testEraseOthers},
		{"change commits with the erasure", testEraseChange},
		{"reference can be used again", testEraseFreesReference},
		{"concurrent erasures count each record once", testEraseTogether},
		{"nothing is left beside other calls", testEraseBeside},
	}
}

// erase erases after a dry run. The dry run must return the same numbers and change nothing.
func (w *world) erase(e formsvc.Erasing) formsvc.Erased {
	w.Helper()
	before := w.snapshot()
	counted, err := countErasure(w.ctx, w.store, e)
	w.must("CountErasure", err)
	w.unchanged("CountErasure", &before)
	out, err := w.store.Erase(w.ctx, e, formsvc.Change{})
	w.must("Erase", err)
	w.same("what was erased, next to what was counted", out, counted)
	again, err := w.store.Erase(w.ctx, e, formsvc.Change{})
	w.must("Erase, again", err)
	w.same("what was erased the second time", again, formsvc.Erased{})
	return out
}

// addFull adds a response with two records of each kind: files, comments, signatures and events. The events are due at
// the given time.
func (w *world) addFull(c *formsvc.Campaign, due time.Time) (r formsvc.Response, files []formsvc.ID, events []formsvc.Event) {
	w.Helper()
	r = w.newResponse(c)
	for range 2 {
		e := w.newEvent(&r)
		e.CreatedAt = due
		events = append(events, e)
	}
	w.must("CreateResponse", w.create(r, events[0]))
	for i := range 2 {
		files = append(files, w.addFile(&r).ID)
		w.addComment(&r)
		w.must("CreateSignature", w.createSignature(w.newSignature(&r), events[1:][:i]...))
	}
	return r, files, events
}

func testEraseResponse(w *world) {
	sc, other := w.addScene(), w.addScene()
	second := w.addWebhook(sc.account.ID)
	w.addFull(&sc.campaign, nextDay())
	w.addFull(&other.campaign, nextDay())
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	w.attend(&second, nextDay(), delivery.Postponed)
	w.attend(&other.hook, nextDay(), delivery.Failed)
	w.addFull(&sc.campaign, nextDay().Add(3*time.Hour))
	before := w.snapshot()

	r, files, events := w.addFull(&sc.campaign, nextDay().Add(time.Minute))
	w.attend(&sc.hook, nextDay().Add(time.Minute), delivery.Failed)      // two attempts and notices
	w.attend(&second, nextDay().Add(time.Minute), delivery.Postponed)    // two attempts
	w.take(nextDay().Add(time.Minute+time.Second), share(&sc.hook, 100)) // nothing is left
	out := w.erase(formsvc.Erasing{AccountID: sc.account.ID, Responses: []formsvc.ResponseKey{keyOf(&r)}})
	slices.Sort(files)
	w.same("erased", out, formsvc.Erased{FileIDs: files, ErasedTotals: formsvc.ErasedTotals{
		Responses: 1, Files: 2, Comments: 2, Signatures: 2, Events: 2, Deliveries: 4, Attempts: 4, Notices: 2,
	}})
	w.unchanged("Erase of a response that was added", &before)
	w.noEvents("an erased response", events...)
	w.wantGone(&r)
	unknown, err := w.store.UnknownFiles(w.ctx, files)
	w.must("UnknownFiles", err)
	w.same("unknown files", unknown, files)
	_, last := w.addResponse(&sc.campaign)
	page, _ := w.feed(formsvc.EventQuery{AccountID: sc.account.ID}, &last)
	for _, e := range page {
		if e.ResponseID == r.ID {
			w.Errorf("the feed has an event about a response that was erased")
		}
	}
	if len(page) != 5 {
		w.Errorf("%d events in the feed, want 5", len(page))
	}
}

func testEraseCampaigns(w *world) {
	sc := w.addScene()
	second := w.addCampaign(sc.account.ID)
	before := w.snapshot()
	e := formsvc.Erasing{AccountID: sc.account.ID}
	const each = 150 // together more than fit one statement
	for _, c := range []*formsvc.Campaign{&second, &sc.campaign} {
		for range each {
			r, _ := w.addResponse(c)
			e.Responses = append(e.Responses, keyOf(&r))
		}
	}
	e.Responses = append(e.Responses, e.Responses[0], e.Responses[each])
	out := w.erase(e)
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Responses: 2 * each, Events: 2 * each, Deliveries: 2 * each})
	w.unchanged("Erase of all responses", &before)
}

func testEraseSignatures(w *world) {
	sc := w.addScene()
	r, _, _ := w.addFull(&sc.campaign, nextDay())
	before := w.snapshot()
	sig := w.addSignature(&r)
	out := w.erase(formsvc.Erasing{AccountID: sc.account.ID, Signatures: []formsvc.ID{sig.ID, sig.ID}})
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Signatures: 1})
	w.unchanged("Erase of a signature that was added", &before)
	by, err := signaturesBy(w.ctx, w.store, sc.account.ID, sig.Signer.Email, "", 10)
	w.must("SignaturesBy", err)
	w.same("signatures of that signer", by, w.signatures(&r))

	// A record that goes with its response is counted once.
	signed := w.signatures(&r)
	out = w.erase(formsvc.Erasing{
		AccountID: sc.account.ID, Signatures: []formsvc.ID{signed[0].ID}, Responses: []formsvc.ResponseKey{keyOf(&r)},
	})
	if out.Signatures != 2 {
		w.Errorf("%d signatures erased, want 2", out.Signatures)
	}
}

func testEraseEvents(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	before := w.snapshot()
	extra := w.newEvent(&r)
	extra.CreatedAt = nextDay().Add(time.Hour)
	w.must("CreateFile", w.createFile(w.newFile(&r), extra))
	w.attend(&sc.hook, nextDay().Add(time.Hour), delivery.Failed)
	before.Files = w.allFiles()
	ids := []formsvc.ID{extra.ID, extra.ID}
	out := w.erase(formsvc.Erasing{AccountID: sc.account.ID, Events: ids})
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Events: 1, Deliveries: 1, Attempts: 1, Notices: 1})
	w.unchanged("Erase of an event that was added", &before)
	_, err := w.store.Redeliver(w.ctx, formsvc.DeliveryKey{AccountID: sc.account.ID, ID: formsvc.DeliveryID(extra.ID, sc.hook.ID)},
		nextDay(), nil)
	w.wantError("Redeliver of what was erased", err, formsvc.ErrNotFound)
}

// An attempt in progress ends and leaves no record.
func testEraseClaimed(w *world) {
	sc := w.addScene()
	r, e := w.addResponse(&sc.campaign)
	c := w.takeOne(nextDay(), &sc.hook)
	out := w.erase(formsvc.Erasing{AccountID: sc.account.ID, Responses: []formsvc.ResponseKey{keyOf(&r)}})
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Responses: 1, Events: 1, Deliveries: 1})
	if w.finish(outcome(&c, delivery.Failed, nextDay())) {
		w.Errorf("the outcome of an erased delivery was accepted")
	}
	w.noEvents("an erased response", e)
	if list := w.notices(sc.account.ID); len(list) != 0 {
		w.Errorf("%d notices of an erased delivery", len(list))
	}
	for _, at := range []time.Time{nextDay(), nextDay().Add(lease), nextDay().Add(time.Hour)} {
		if claims := w.claim(at); len(claims) != 0 {
			w.Errorf("an erased delivery is claimed again at %v", at)
		}
	}
}

func testEraseDeletedWebhook(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	kept, _ := w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	if n := len(w.notices(sc.account.ID)); n != 2 {
		w.Fatalf("%d notices, want 2", n)
	}
	out := w.erase(formsvc.Erasing{AccountID: sc.account.ID, Responses: []formsvc.ResponseKey{keyOf(&r)}})
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Responses: 1, Events: 1, Notices: 1})
	if n := len(w.notices(sc.account.ID)); n != 1 {
		w.Errorf("%d notices left, want 1", n)
	}
	w.wantResponses(&sc.campaign, kept)
}

// addAnswer stores a reply to a call about a response.
func (w *world) addAnswer(account, response formsvc.ID, key, body string) formsvc.IdempotencyRecord {
	w.Helper()
	_, at := w.next()
	record := formsvc.IdempotencyRecord{AccountID: account, Key: key, CreatedAt: at, Reply: formsvc.Reply{
		Request: sha256.Sum256([]byte(key)), Status: 201, ETag: `"1"`, Location: "/x", Body: []byte(body), ResponseID: response,
	}}
	w.must("Remember", remember(w.ctx, w.store, record))
	return record
}

// addRefusal stores a refusal, which is about no response.
func (w *world) addRefusal(account formsvc.ID, key, body string) formsvc.IdempotencyRecord {
	w.Helper()
	_, at := w.next()
	record := formsvc.IdempotencyRecord{AccountID: account, Key: key, CreatedAt: at, Reply: formsvc.Reply{
		Request: sha256.Sum256([]byte(key)), Status: 422, Body: []byte(body),
	}}
	w.must("Remember", remember(w.ctx, w.store, record))
	return record
}

// wantAnswer checks a stored reply. An emptied one has only the fact that the call was made.
func (w *world) wantAnswer(record formsvc.IdempotencyRecord, emptied bool) {
	w.Helper()
	if emptied {
		record.Status, record.ETag, record.Location, record.Body = 410, "", "", nil
	}
	got, err := w.store.Recall(w.ctx, record.AccountID, record.Key, start())
	w.must("Recall", err)
	w.same("record "+record.Key, got, record)
}

func testEraseAnswers(w *world) {
	sc, other := w.addScene(), w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	neighbour, _ := w.addResponse(&sc.campaign)
	account := sc.account.ID
	about := w.addAnswer(account, r.ID, "about", `{"x":1}`)
	named := w.addAnswer(account, neighbour.ID, "named", `{"signer":"EVE@example.com"}`)
	unnamed := w.addAnswer(account, neighbour.ID, "unnamed", `{"signer":"eve@example.co"}`)
	unasked := w.addAnswer(account, "", "unasked", `{"signer":"eve@example.com"}`)
	elsewhere := w.addAnswer(other.account.ID, r.ID, "elsewhere", `{"signer":"eve@example.com"}`)
	out := w.erase(formsvc.Erasing{
		AccountID: account, Responses: []formsvc.ResponseKey{keyOf(&r)},
		AnswersOf: []formsvc.ID{neighbour.ID, r.ID, neighbour.ID, "nope", ""}, AnswersWith: "eve@Example.com",
	})
	w.same("erased", out.ErasedTotals, formsvc.ErasedTotals{Responses: 1, Events: 1, Deliveries: 1, Answers: 2})
	w.wantAnswer(about, true)
	w.wantAnswer(named, true)
	w.wantAnswer(unnamed, false)
	w.wantAnswer(unasked, false)
	w.wantAnswer(elsewhere, false)
	out = w.erase(formsvc.Erasing{AccountID: account, Responses: []formsvc.ResponseKey{keyOf(&neighbour)}})
	if out.Answers != 1 { // one of its two has no stored reply any more
		w.Errorf("%d answers erased with the response, want 1", out.Answers)
	}
	w.wantError("Remember with the key of an emptied record", remember(w.ctx, w.store, about), formsvc.ErrRepeated)
	var refusals, others []formsvc.IdempotencyRecord
	for i := range 50 {
		refusals = append(refusals, w.addRefusal(account, fmt.Sprintf("refused %d", i), `{"pointer":"/responses/Eve@example.com"}`))
		others = append(others, w.addRefusal(account, fmt.Sprintf("other %d", i), `{"pointer":"/responses/eva@example.com"}`))
	}
	others = append(others, unasked, elsewhere, w.addRefusal(other.account.ID, "refused", `{"pointer":"/responses/eve@example.com"}`))
	e := formsvc.Erasing{AccountID: account, AnswersWith: "eve@Example.com", Refusals: true}
	counted, err := countErasure(w.ctx, w.store, e)
	w.must("CountErasure", err)
	w.same("counted", counted.ErasedTotals, formsvc.ErasedTotals{Answers: len(refusals)})
	w.same("erased", w.erase(e).ErasedTotals, counted.ErasedTotals)
	w.same("erased again", w.erase(e).ErasedTotals, formsvc.ErasedTotals{})
	for _, record := range refusals {
		w.wantAnswer(record, true)
	}
	for _, record := range others {
		w.wantAnswer(record, false)
	}
	_, err = countErasure(w.ctx, w.store, formsvc.Erasing{AccountID: account, AnswersWith: "\x00"})
	w.wantError("CountErasure with a NUL", err, formsvc.ErrInvalid)
	_, err = w.store.Erase(w.ctx, formsvc.Erasing{AccountID: account, AnswersWith: "\xff"}, formsvc.Change{})
	w.wantError("Erase with what is no text", err, formsvc.ErrInvalid)
}

// everything names all records of a response in an Erasing of that account.
func (w *world) everything(account formsvc.ID, r *formsvc.Response, events []formsvc.Event) formsvc.Erasing {
	e := formsvc.Erasing{AccountID: account, Responses: []formsvc.ResponseKey{keyOf(r)}, AnswersOf: []formsvc.ID{r.ID}}
	for _, sig := range w.signatures(r) {
		e.Signatures = append(e.Signatures, sig.ID)
	}
	for i := range events {
		e.Events = append(e.Events, events[i].ID)
	}
	return e
}

func testEraseOthers(w *world) {
	sc, other := w.addScene(), w.addScene()
	r, _, events := w.addFull(&sc.campaign, nextDay())
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	record := w.addAnswer(sc.account.ID, r.ID, "k", "{}")
	before := w.snapshot()
	for _, account := range []formsvc.ID{other.account.ID, w.nextID(), "nope", ""} {
		e := w.everything(account, &r, events)
		moved := e.Responses[0]
		moved.AccountID = account
		e.Responses = append(e.Responses, moved)
		w.same("erased of another account", w.erase(e), formsvc.Erased{})
	}
	wrong := w.addCampaign(sc.account.ID)
	before.Campaigns[sc.account.ID] = w.campaigns(sc.account.ID)
	before.Responses[wrong.ID] = nil
	w.same("erased of nothing", w.erase(formsvc.Erasing{
		AccountID: sc.account.ID,
		Responses: []formsvc.ResponseKey{
			{AccountID: sc.account.ID, CampaignID: wrong.ID, ID: r.ID}, {AccountID: sc.account.ID, CampaignID: sc.campaign.ID, ID: w.nextID()},
			{AccountID: sc.account.ID, CampaignID: "nope", ID: r.ID}, {AccountID: sc.account.ID, CampaignID: sc.campaign.ID, ID: "nope"},
			{AccountID: other.account.ID, CampaignID: sc.campaign.ID, ID: r.ID},
		},
		Signatures: []formsvc.ID{w.nextID(), "nope", ""}, Events: []formsvc.ID{w.nextID(), "nope", ""},
	}), formsvc.Erased{})
	w.unchanged("Erase of what is not there", &before)
	w.wantAnswer(record, false)
}

func testEraseChange(w *world) {
	sc := w.addScene()
	r, _, events := w.addFull(&sc.campaign, nextDay())
	other := w.newResponse(&sc.campaign)
	event := w.newEvent(&other)
	e := w.everything(sc.account.ID, &r, events)
	taken := w.addAnswer(sc.account.ID, "", "taken", "{}")
	entry := w.newAudit(sc.account.ID)
	w.must("AppendAudit", audit(w.ctx, w.store, entry))
	before := w.snapshot()
	fresh := w.newAudit(sc.account.ID)
	for what, c := range map[string]struct {
		change formsvc.Change
		want   error
	}{
		"a taken key":   {formsvc.Change{Idempotency: &taken, Audit: &fresh}, formsvc.ErrRepeated},
		"a taken entry": {formsvc.Change{Audit: &entry}, formsvc.ErrConflict},
		"a taken event": {formsvc.Change{Events: []formsvc.Event{event, event}, Audit: &fresh}, formsvc.ErrConflict},
	} {
		out, err := w.store.Erase(w.ctx, e, c.change)
		w.wantError("Erase with "+what, err, c.want)
		w.same("erased with "+what, out, formsvc.Erased{})
		w.unchanged("Erase with "+what, &before)
	}
	_, err := w.store.Erase(w.ctx, e, formsvc.Change{Audit: &fresh, Events: []formsvc.Event{event}})
	w.must("Erase", err)
	w.same("audit trail", w.audit(formsvc.AuditQuery{AccountID: sc.account.ID}), []formsvc.AuditEntry{entry, fresh})
	w.wantHeard([]formsvc.Webhook{sc.hook}, []formsvc.Event{event})
	last := w.newAudit(sc.account.ID)
	_, err = w.store.Erase(w.ctx, formsvc.Erasing{AccountID: sc.account.ID}, formsvc.Change{Audit: &last})
	w.must("Erase of nothing", err)
	if n := len(w.audit(formsvc.AuditQuery{AccountID: sc.account.ID})); n != 3 {
		w.Errorf("%d entries, want that of Erase of nothing, too", n)
	}
}

func testEraseFreesReference(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	w.erase(formsvc.Erasing{AccountID: sc.account.ID, Responses: []formsvc.ResponseKey{keyOf(&r)}})
	next := w.newResponse(&sc.campaign)
	next.Reference = r.Reference
	w.must("CreateResponse with the reference", w.create(next))
}

// testEraseTogether erases the same responses concurrently: each is counted by one call.
func testEraseTogether(w *world) {
	sc := w.addScene()
	const n = 60
	keys := make([]formsvc.ResponseKey, n)
	for i := range keys {
		r, _ := w.addResponse(&sc.campaign)
		keys[i] = keyOf(&r)
	}
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	var mu sync.Mutex
	var total formsvc.ErasedTotals
	w.together(8, func(i int) {
		mine := slices.Clone(keys)
		if i%2 == 0 {
			slices.Reverse(mine)
		}
		out, err := w.store.Erase(w.ctx, formsvc.Erasing{AccountID: sc.account.ID, Responses: mine}, formsvc.Change{})
		w.check("Erase beside others", err)
		mu.Lock()
		defer mu.Unlock()
		total.Add(&out.ErasedTotals)
	})
	w.same("erased together", total, formsvc.ErasedTotals{Responses: n, Events: n, Deliveries: n, Attempts: n, Notices: n})
	if c := w.campaigns(sc.account.ID); c[0].ResponseCount != 0 {
		w.Errorf("%d responses counted, want none", c[0].ResponseCount)
	}
}

// testEraseBeside erases responses while they get files, comments, signatures and changes, and while their deliveries
// are sent: nothing of them must remain.
func testEraseBeside(w *world) {
	sc := w.addScene()
	before := w.snapshot()
	for round := range 6 {
		list := make([]formsvc.Response, 10)
		keys := make([]formsvc.ResponseKey, len(list))
		for i := range list {
			list[i], _ = w.addResponse(&sc.campaign)
			keys[i] = keyOf(&list[i])
		}
		calls := []func(r *formsvc.Response) error{
			func(r *formsvc.Response) error { return w.createFile(w.newFile(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return w.createComment(w.newComment(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return w.createSignature(w.newSignature(r), w.newEvent(r)) },
			func(r *formsvc.Response) error { return incrementResponse(w, w.store, r) },
		}
		w.together(len(calls)+2, func(i int) {
			switch {
			case i < len(calls):
				for j := range list {
					if err := calls[i](&list[j]); err != nil {
						w.wantError(fmt.Sprintf("call %d beside Erase", i), err, formsvc.ErrNotFound)
					}
				}
			case i == len(calls):
				for range 5 {
					claims := w.take(nextDay(), share(&sc.hook, 20))
					outcomes := make([]delivery.Outcome, len(claims))
					for j := range claims {
						outcomes[j] = outcome(&claims[j], []delivery.Result{delivery.Failed, delivery.Postponed}[j%2], nextDay())
					}
					_, err := w.store.Finish(w.ctx, outcomes)
					w.check("Finish beside Erase", err)
				}
			default:
				time.Sleep(time.Duration(round) * time.Millisecond) // so that the other goroutines have begun
				_, err := w.store.Erase(w.ctx, formsvc.Erasing{AccountID: sc.account.ID, Responses: keys}, formsvc.Change{})
				w.check("Erase beside others", err)
			}
		})
	}
	w.unchanged("Erase of all that was added", &before)
}
