package storagetest

import (
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// manyQuotas adds to more windows than fit one statement, twice, in different orders.
func manyQuotas(w *world) any {
	list := make([]formsvc.QuotaCount, 450)
	for i := range list {
		list[i] = formsvc.QuotaCount{Subject: w.nextID(), Start: start().Add(time.Duration(i%2) * time.Hour), N: i + 1}
	}
	var got []any
	for range 2 {
		totals, err := w.store.AddQuota(w.ctx, list)
		w.must("AddQuota", err)
		use, err := w.store.QuotaUse(w.ctx, list[0].Subject, time.Time{})
		w.must("QuotaUse", err)
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
		use, err := w.store.QuotaUse(w.ctx, subject, time.Time{})
		w.must("QuotaUse", err)
		w.same("use", use, []formsvc.QuotaUse{{Start: start(), Used: adders * rounds}})
	}
}
