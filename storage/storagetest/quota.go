package storagetest

import (
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// wantUsed fails the test unless the store has counted that many requests over all windows.
func (w *world) wantUsed(subject formsvc.ID, want int) {
	w.Helper()
	list, err := w.store.QuotaUse(w.ctx, subject, time.Time{})
	w.must("QuotaUse", err)
	got := 0
	for _, u := range list {
		got += u.Used
	}
	if got != want {
		w.Errorf("%d requests are counted, want %d", got, want)
	}
}

// testQuotaLongList adds to more windows than fit one statement, twice, in different orders.
func testQuotaLongList(w *world) {
	const n = 450
	list := make([]formsvc.QuotaCount, n)
	for i := range list {
		list[i] = formsvc.QuotaCount{Subject: w.nextID(), Start: start().Add(time.Duration(i%2) * time.Hour), N: i + 1}
	}
	for round := 1; round <= 2; round++ {
		totals, err := w.store.AddQuota(w.ctx, list)
		w.must("AddQuota", err)
		for i, c := range list {
			if want := round * c.N; totals[i] != want {
				w.Fatalf("window %d of %d has counted %d, want %d", i, n, totals[i], want)
			}
		}
		w.wantUsed(list[0].Subject, round*list[0].N)
		for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}
}

// addTogether adds to the same windows from several stores at once, in different orders: every
// request is counted, and the totals show the order.
func (w *world) addTogether(stores []Store) {
	const writers, rounds = 8, 20
	subjects := []formsvc.ID{w.nextID(), w.nextID()}
	seen := make([][]int, writers)
	w.together(writers, func(i int) {
		for range rounds {
			list := []formsvc.QuotaCount{{Subject: subjects[i%2], Start: start(), N: 1}, {Subject: subjects[1-i%2], Start: start(), N: 1}}
			totals, err := stores[i%len(stores)].AddQuota(w.ctx, list)
			w.check("AddQuota", err)
			if err == nil {
				seen[i] = append(seen[i], totals[i%2])
			}
		}
	})
	all := make(map[int]bool)
	for _, totals := range seen {
		for _, n := range totals {
			all[n] = true
		}
	}
	if len(all) != writers*rounds {
		w.Errorf("%d different totals of %d requests: some were not counted", len(all), writers*rounds)
	}
	for _, subject := range subjects {
		w.wantUsed(subject, writers*rounds)
	}
}
