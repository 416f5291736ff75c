package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// testIsolation makes every call that looks up records, with each of its identifiers replaced in turn. The replacements
// are identifiers of another account, of another campaign and of no record, and texts that are no canonical IDs.
func testIsolation(w *world) {
	mine, others := w.addTarget(), w.addTarget()
	mine2 := *mine // another campaign of the same account
	second := w.newCampaign(mine[accountPart])
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, second, formsvc.Change{}))
	r, _ := w.addResponse(&second)
	mine2[campaignPart], mine2[responsePart] = second.ID, r.ID
	before := w.snapshot()

	for _, c := range calls() {
		for _, p := range c.uses {
			bad := map[string]formsvc.ID{
				"no": w.nextID(), "an empty": "", "a malformed": "nope", "an upper case": formsvc.ID(strings.ToUpper(string(mine[p]))),
				"a braced": "{" + mine[p] + "}", "an undashed": formsvc.ID(strings.ReplaceAll(string(mine[p]), "-", "")),
			}
			if p != accountPart || len(c.uses) > 1 { // otherwise it is that account's own call
				bad["another account's"] = others[p]
			}
			if p >= campaignPart && slices.Contains(c.uses, responsePart) {
				bad["another campaign's"] = mine2[p]
			}
			for whose, id := range bad {
				at := *mine
				at[p] = id
				if id == mine[p] {
					continue
				}
				w.notFound(fmt.Sprintf("%s with %s %s", c.name, whose, p), &c, &at)
			}
		}
	}
	w.unchanged("calls that found nothing", &before)
}

func (w *world) notFound(what string, c *call, at *target) {
	w.Helper()
	items, err := c.do(w.ctx, w, at)
	if !c.none {
		w.wantError(what, err, formsvc.ErrNotFound)
	} else if items != 0 || err != nil {
		w.Errorf("%s: %d items, error %v; want none and no error", what, items, err)
	}
}

// Text with a NUL is invalid, and no record has it as its ID: a store may return either error, and nothing else.
func testNULID(w *world) {
	mine := w.addTarget()
	before := w.snapshot()
	for _, c := range calls() {
		for _, p := range c.uses {
			at := *mine
			at[p] = mine[p][:35] + "\x00"
			items, err := c.do(w.ctx, w, &at)
			ok := errors.Is(err, formsvc.ErrInvalid) || errors.Is(err, formsvc.ErrNotFound) || c.none && err == nil && items == 0
			if !ok {
				w.Errorf("%s with a NUL in %s: %d items, error %v", c.name, p, items, err)
			}
		}
	}
	w.unchanged("calls with a NUL", &before)
}

// testCallsSucceed shows that the calls in other tests fail for the tested reason.
func testCallsSucceed(w *world) {
	at := w.addTarget()
	for _, c := range calls() {
		items, err := c.do(w.ctx, w, at)
		if err != nil {
			w.Errorf("%s: %v", c.name, err)
		}
		if c.none && items == 0 {
			w.Errorf("%s: nothing, want something", c.name)
		}
	}
}

func testUnknownOthers(w *world) {
	at := w.addTarget()
	before := w.snapshot()
	_, err := w.store.AccountByName(w.ctx, "nobody")
	w.wantError("AccountByName of an unknown name", err, formsvc.ErrNotFound)
	_, err = w.store.AccountByName(w.ctx, "")
	w.wantError("AccountByName of no name", err, formsvc.ErrNotFound)
	_, err = w.store.KeyByHash(w.ctx, [32]byte{1})
	w.wantError("KeyByHash of an unknown hash", err, formsvc.ErrNotFound)

	payloads, err := w.store.Payloads(w.ctx, []string{string(w.nextID()), "nope", ""})
	if err != nil || len(payloads) != 0 {
		w.Errorf("Payloads of unknown events: %d, %v; want none", len(payloads), err)
	}
	for _, id := range []string{string(w.nextID()), "nope", ""} {
		for _, endpoint := range []string{string(at[webhookPart]), string(w.nextID()), "nope", ""} {
			if w.finish(delivery.Outcome{ID: id, Endpoint: endpoint, Lease: 1, Result: delivery.Delivered}) {
				w.Errorf("Finish of the unknown delivery %q of endpoint %q was accepted", id, endpoint)
			}
		}
	}
	w.unchanged("calls that found nothing", &before)
}
