package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func idempotencyTests() []test {
	return []test{
		{"record commits with the change", testRecordCommits},
		{"retry changes nothing", testRepeatedChangesNothing},
		{"failed transaction leaves no record", testFailedLeavesNoRecord},
		{"one of many concurrent transactions wins", testOneKeyAtOnce},
		{"keys in grouped creates", testKeysAmongCreates},
		{"keys belong to accounts", testKeysApart},
		{"texts and times are kept", testRecordTexts},
		{"arguments and results are copied", testRecordCopied},
		{"records expire", testRecallSince},
		{"expired records are deleted in order", testForget},
		{"context ends during creates with a key", testCancelDuringKeyed},
	}
}

func testRecordCommits(w *world) {
	at := w.addTarget()
	account := at[accountPart]
	for _, write := range keyedWrites() {
		r := w.fullRecord(account, write.name)
		w.noRecord(write.name+" to come", account, r.Key)
		if err := write.do(w, at, formsvc.Change{Idempotency: &r}); err != nil {
			w.Errorf("%s: %v", write.name, err)
			continue
		}
		w.wantRecord(write.name, &r)
	}
	plain := formsvc.IdempotencyRecord{AccountID: account, Key: "plain", CreatedAt: start()}
	w.must("Remember", remember(w.ctx, w.store, plain))
	w.wantRecord("Remember with next to nothing", &plain)
}

func testRepeatedChangesNothing(w *world) {
	at := w.addTarget()
	first := w.addRecord(at[accountPart], "k")
	before := w.snapshot()
	for _, write := range keyedWrites() {
		r := w.fullRecord(at[accountPart], "k")
		w.wantError(write.name, write.do(w, at, formsvc.Change{Idempotency: &r}), formsvc.ErrRepeated)
	}
	w.wantError("Remember", remember(w.ctx, w.store, w.fullRecord(at[accountPart], "k")), formsvc.ErrRepeated)
	r := w.newResponse(&formsvc.Campaign{ID: at[campaignPart], AccountID: at[accountPart]})
	e, again := w.newEvent(&r), w.fullRecord(at[accountPart], "k")
	change := formsvc.Change{Events: []formsvc.Event{e}, Idempotency: &again}
	w.wantError("CreateResponse", w.store.CreateResponse(w.ctx, r, 1, change), formsvc.ErrRepeated)
	w.noEvents("CreateResponse that was repeated", e)
	w.wantRecord("repetitions", &first)
	w.unchanged("units that were repeated", &before)
	if n := len(w.claim(nextDay())); n != 1 {
		w.Errorf("%d deliveries are due, want the one of before", n)
	}
}

func testFailedLeavesNoRecord(w *world) {
	mine, before := w.addTarget(), 0
	account := mine[accountPart]
	fail := func(what string, want error, do func(change formsvc.Change) error) {
		w.Helper()
		before++
		key := fmt.Sprintf("%s %d", what, before)
		r := w.fullRecord(account, key)
		w.wantError(what, do(formsvc.Change{Idempotency: &r}), want)
		w.noRecord(what, account, key)
	}
	at := *mine
	known := w.snapshot()
	for _, write := range keyedWrites() {
		for _, p := range write.uses {
			at := *mine
			at[p] = w.nextID()
			fail(fmt.Sprintf("%s with no %s", write.name, p), formsvc.ErrNotFound, func(change formsvc.Change) error {
				return write.do(w, &at, change)
			})
		}
	}
	taken, err := w.store.Response(w.ctx, at.responseKey())
	w.must("Response", err)
	r := w.newResponse(&formsvc.Campaign{ID: at[campaignPart], AccountID: account})
	fail("CreateResponse of another version", formsvc.ErrStale, func(change formsvc.Change) error {
		return w.store.CreateResponse(w.ctx, r, 2, change)
	})
	r.Reference = taken.Reference
	fail("CreateResponse with a taken reference", formsvc.ErrConflict, func(change formsvc.Change) error {
		return w.store.CreateResponse(w.ctx, r, 1, change)
	})
	fail("CreateFile with a taken ID", formsvc.ErrConflict, func(change formsvc.Change) error {
		f := w.newFile(at.response())
		f.ID = at[filePart]
		return w.store.CreateFile(w.ctx, f, deciding[*formsvc.Response](change))
	})
	fail("CreateWebhook over the limit", formsvc.ErrLimit, func(change formsvc.Change) error {
		_, _, err := w.store.CreateWebhook(w.ctx, w.newWebhook(account), 1,
			func(*formsvc.Webhook, bool) (formsvc.Change, error) { return change, nil })
		return err
	})
	fail("a record with a NUL", formsvc.ErrInvalid, func(change formsvc.Change) error {
		change.Idempotency.Location = "\x00"
		return w.store.CreateCampaign(w.ctx, w.newCampaign(account), change)
	})
	w.unchanged("units that failed", &known)
}

func testOneKeyAtOnce(w *world) { w.wantOneOfMany([]Store{w.store}) }

// wantOneOfMany runs a hundred concurrent transactions with one key through the stores in turn, first of one method and
// then of several.
func (w *world) wantOneOfMany(stores []Store) {
	w.Helper()
	sc := w.addScene()
	at := &target{accountPart: sc.account.ID, campaignPart: sc.campaign.ID, webhookPart: sc.hook.ID}
	response, _ := w.addResponse(&sc.campaign)
	at[responsePart] = response.ID
	var turn atomic.Int64
	try := func(key string, writes ...string) {
		w.Helper()
		var chosen []keyed
		for _, write := range keyedWrites() {
			for _, name := range writes {
				if write.name == name {
					chosen = append(chosen, write)
				}
			}
		}
		if len(chosen) != len(writes) {
			w.Fatalf("%d writes of %q", len(chosen), writes)
		}
		if won := w.race(100, formsvc.ErrRepeated, func() error {
			n := int(turn.Add(1))
			through := &world{T: w.T, ctx: w.ctx, store: stores[n%len(stores)]}
			through.count.Store(int64(n) << 20) // its own identifiers
			r := through.fullRecord(sc.account.ID, key)
			return chosen[n/len(stores)%len(chosen)].do(through, at, formsvc.Change{Idempotency: &r})
		}); won != 1 {
			w.Errorf("%d of %q with one key", won, writes)
		}
	}
	for i := range 3 {
		try(fmt.Sprint("responses ", i), "CreateResponse")
	}
	w.wantCount(&sc.campaign, &sc.hook, 4)
	try("files", "CreateFile")
	if n := len(w.files(&response)); n != 1 {
		w.Errorf("%d files", n)
	}
	try("campaigns", "CreateCampaign")
	if n := len(w.campaigns(sc.account.ID)); n != 2 {
		w.Errorf("%d campaigns, want 2", n)
	}
	try("tests", "CreateTest")
	try("several", "CreateResponse", "UpdateWebhook", "CreateKey")
}

// testKeysAmongCreates mixes creates with and without keys in the same groups, including pairs with the same key and
// creates that fail for another reason.
func testKeysAmongCreates(w *world) {
	sc := w.addScene()
	taken, _ := w.addResponse(&sc.campaign)
	var (
		mu   sync.Mutex
		done = map[string]int{}
		good = int64(1)
	)
	w.writeMany(func(writer, n int) {
		r := w.newResponse(&sc.campaign)
		version, change := int64(1), formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}}
		key, want := "", error(nil)
		switch writer % 8 {
		case 0, 1, 2, 3: // as many as there are pairs
			key = fmt.Sprint("pair ", writer/8, writer%2, n)
		case 4:
			key, version, want = fmt.Sprint("stale ", writer, n), 2, formsvc.ErrStale
		case 5:
			key, want = fmt.Sprint("taken ", writer, n), formsvc.ErrConflict
			r.Reference = taken.Reference
		}
		if key != "" {
			change.Idempotency = new(w.fullRecord(sc.account.ID, key))
		}
		err := w.store.CreateResponse(w.ctx, r, version, change)
		if errors.Is(err, formsvc.ErrRepeated) && want == nil && key != "" {
			w.noEvents("CreateResponse that was repeated", change.Events...)
			return
		}
		if want != nil {
			w.wantError("CreateResponse", err, want)
			w.noRecord("CreateResponse that failed", sc.account.ID, key)
			return
		}
		w.check("CreateResponse", err)
		mu.Lock()
		defer mu.Unlock()
		good++
		if key != "" {
			done[key]++
			w.wantRecord("CreateResponse", change.Idempotency)
		}
	})
	if len(done) != writers/8*2*writes {
		w.Errorf("%d keys were done, want %d", len(done), writers/8*2*writes)
	}
	for key, n := range done {
		if n != 1 {
			w.Errorf("key %q was done %d times", key, n)
		}
	}
	w.wantCount(&sc.campaign, &sc.hook, good)
}

func testKeysApart(w *world) {
	mine, other := w.addAccount().ID, w.addAccount().ID
	for _, key := range []string{"k", "K", "kk", `"k"`, "k ", "ｋ", strings.Repeat("k", formsvc.MaxIdempotencyKey)} {
		a, b := w.addRecord(mine, key), w.addRecord(other, key)
		w.wantRecord("mine", &a)
		w.wantRecord("the other account's", &b)
		w.wantError("again", remember(w.ctx, w.store, w.fullRecord(mine, key)), formsvc.ErrRepeated)
	}
	w.noRecord("another key", mine, "l")
	w.noRecord("an empty key", mine, "")
	w.noRecord("another account", w.nextID(), "k")
	w.noRecord("no account", "", "k")
}

func testRecordTexts(w *world) {
	account := w.addAccount().ID
	for i, text := range []string{"", `"`, "é", "e\u0301", "\U0001F600", "a\r\n\tb", " ", "null", `\x00`, "?", "$1", "'"} {
		r := w.fullRecord(account, fmt.Sprint("text ", i, text))
		r.ETag, r.Location, r.Body, r.ResponseID = text, text, []byte(text), ""
		r.Status = 400 + i
		w.must("Remember", remember(w.ctx, w.store, r))
		w.wantRecord(fmt.Sprintf("text %q", text), &r)
	}
	for _, text := range []string{"\x00", "a\x00b", "\xff", "a\xc3"} {
		for i, edit := range []func(*formsvc.IdempotencyRecord){
			func(r *formsvc.IdempotencyRecord) { r.Key += text },
			func(r *formsvc.IdempotencyRecord) { r.ETag = text },
			func(r *formsvc.IdempotencyRecord) { r.Location = text },
		} {
			r := w.fullRecord(account, fmt.Sprintf("refused %x %d", text, i))
			edit(&r)
			w.wantError(fmt.Sprintf("Remember with %q", text), remember(w.ctx, w.store, r), formsvc.ErrInvalid)
		}
	}
	r := w.fullRecord(account, "time")
	r.CreatedAt = time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 3600))
	r.Body = []byte(strings.Repeat("long ", 100_000))
	w.must("Remember", remember(w.ctx, w.store, r))
	r.CreatedAt = time.Date(2026, 7, 1, 0, 2, 3, 999_999_000, time.UTC)
	w.wantRecord("time", &r)
}

func testRecordCopied(w *world) {
	r := w.fullRecord(w.addAccount().ID, "k")
	want := r
	want.Body = []byte(string(r.Body))
	w.must("Remember", remember(w.ctx, w.store, r))
	r.Body[0] = 'X'
	w.wantRecord("the caller changed what it had passed", &want)
	got, err := w.store.Recall(w.ctx, r.AccountID, r.Key, start())
	w.must("Recall", err)
	got.Body[0] = 'X'
	w.wantRecord("the caller changed what it had got", &want)
}

func testRecallSince(w *world) {
	r := w.addRecord(w.addAccount().ID, "k")
	w.wantRecord("at its time", &r)
	_, err := w.store.Recall(w.ctx, r.AccountID, r.Key, r.CreatedAt.Add(time.Microsecond))
	w.wantError("Recall of what is too old", err, formsvc.ErrNotFound)
	_, err = w.store.Recall(w.ctx, r.AccountID, r.Key, time.Time{})
	w.wantError("Recall of what was too old", err, formsvc.ErrNotFound)
	again := w.addRecord(r.AccountID, r.Key)
	w.wantRecord("the key is free again", &again)
	if _, err := w.store.Recall(w.ctx, w.addAccount().ID, r.Key, nextDay()); !errors.Is(err, formsvc.ErrNotFound) {
		w.Errorf("Recall of another account: %v", err)
	}
	w.wantRecord("another account's is too old", &again)
}

func testForget(w *world) {
	accounts := []formsvc.ID{w.addAccount().ID, w.addAccount().ID}
	var records []formsvc.IdempotencyRecord
	for i, n := range rand.New(rand.NewPCG(15, 0)).Perm(10) { // in no order
		r := w.fullRecord(accounts[i%2], fmt.Sprint(n))
		r.CreatedAt = start().Add(time.Duration(n) * time.Hour)
		w.must("Remember", remember(w.ctx, w.store, r))
		records = append(records, r)
	}
	gone := func(before time.Time, limit, want int, upTo int) {
		w.Helper()
		n, err := w.store.Prune(w.ctx, formsvc.PruneIdempotency, before, limit)
		if err != nil || n != want {
			w.Errorf("Forget: %d, %v, want %d", n, err, want)
		}
		for i := range records {
			r := &records[i]
			if r.CreatedAt.Before(start().Add(time.Duration(upTo) * time.Hour)) {
				w.noRecord("forgotten", r.AccountID, r.Key)
			} else {
				w.wantRecord("not forgotten", r)
			}
		}
	}
	gone(start(), 100, 0, 0)
	gone(nextDay(), 0, 0, 0)
	gone(start().Add(5*time.Hour), 3, 3, 3)
	gone(start().Add(5*time.Hour), 3, 2, 5)
	gone(start().Add(5*time.Hour), 3, 0, 5)
	gone(nextDay(), 100, 5, 10)
}

// testCancelDuringKeyed compares the results of calls with the store: response and record exist both or not at all.
func testCancelDuringKeyed(w *world) {
	sc := w.addScene()
	many(func(random *rand.Rand) {
		for range 20 {
			r := w.newResponse(&sc.campaign)
			record := w.fullRecord(sc.account.ID, string(r.ID))
			err := w.cancelling(random, w.creating(r, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}, Idempotency: &record}))
			w.wantDone("CreateResponse", err, func() bool {
				_, err := w.store.Recall(w.ctx, record.AccountID, record.Key, start())
				return err == nil
			})
			w.wantDone("CreateResponse", err, func() bool {
				_, err := w.store.Response(w.ctx, keyOf(&r))
				return err == nil
			})
		}
	})
	w.wantCount(&sc.campaign, &sc.hook, int64(len(w.responses(&sc.campaign))))
}

func testHandlesKey(w *world) { w.wantOneOfMany([]Store{w.store, w.reopen(w.T, w.store)}) }

func testRecordsSurviveClose(w *world) {
	account := w.addAccount().ID
	alone, with := w.addRecord(account, "alone"), w.fullRecord(account, "with")
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, w.newCampaign(account), formsvc.Change{Idempotency: &with}))
	w.closeAndReopen()
	w.wantRecord("reopening", &alone)
	w.wantRecord("reopening", &with)
	w.wantError("reopening", remember(w.ctx, w.store, w.fullRecord(account, "with")), formsvc.ErrRepeated)
}
