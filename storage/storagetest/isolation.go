package storagetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

func isolationTests() []test {
	return []test{
		{"calls with existing records succeed", testCallsSucceed},
		{"foreign and unknown records are not found", testIsolation},
	}
}

// testCallsSucceed shows that the calls in other tests fail for the tested reason.
func testCallsSucceed(w *world) {
	at := w.addTarget()
	for _, c := range calls() {
		if items, err := c.do(w.ctx, w, at); err != nil || c.none && items == 0 {
			w.Errorf("%s: %d items, error %v", c.name, items, err)
		}
	}
}

// testIsolation makes every call that looks up records, with each of its identifiers replaced in turn. The replacements
// are identifiers of another account, of another campaign and of no record, and texts that are no canonical IDs.
func testIsolation(w *world) {
	mine, others := w.addTarget(), w.addTarget()
	mine2 := *mine // another campaign of the same account
	second := w.addCampaign(mine[accountPart])
	r, _ := w.addResponse(&second)
	mine2[campaignPart], mine2[responsePart] = second.ID, r.ID
	before := w.snapshot()
	for _, c := range calls() {
		for _, p := range c.uses {
			id := mine[p]
			bad := map[string]formsvc.ID{
				"no": w.nextID(), "an empty": "", "a malformed": "nope", "an upper case": formsvc.ID(strings.ToUpper(string(id))),
				"a braced": "{" + id + "}", "an undashed": formsvc.ID(strings.ReplaceAll(string(id), "-", "")), "a NUL in": id[:35] + "\x00",
			}
			if p != accountPart || len(c.uses) > 1 { // otherwise it is that account's own call
				bad["another account's"] = others[p]
			}
			if p >= campaignPart && slices.Contains(c.uses, responsePart) {
				bad["another campaign's"] = mine2[p]
			}
			for whose, id := range bad {
				if id == mine[p] {
					continue
				}
				at := *mine
				at[p] = id
				items, err := c.do(w.ctx, w, &at)
				ok := !c.none && errors.Is(err, formsvc.ErrNotFound) || c.none && err == nil && items == 0
				if strings.Contains(string(id), "\x00") { // no record has this ID, and it is invalid
					ok = ok || errors.Is(err, formsvc.ErrInvalid) || errors.Is(err, formsvc.ErrNotFound)
				}
				if !ok {
					w.Errorf("%s with %s %s: %d items, error %v", c.name, whose, p, items, err)
				}
			}
		}
	}
	w.unchanged("calls that found nothing", &before)
}
