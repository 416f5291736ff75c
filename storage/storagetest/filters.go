package storagetest

import (
	"math/rand/v2"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func filterTests() []test {
	return []test{
		{"same result as Match", testFilters},
		{"times at the bounds", testFilterTimes},
		{"filters match the current state", testFilterAfterUpdate},
		{"campaigns by part of the title", testSearch},
	}
}

// testSearch has titles that a database's own search functions would match wrongly.
func testSearch(w *world) {
	account, other := w.addAccount().ID, w.addAccount().ID
	titles := []string{
		"Été 2026", "ÉTÉ 2027", "ΟΔΟΣ", "οδος", "100 % sure", "100 of them", "under_score", "underscore", `back\slash`, "it's", "Ё", "ё",
	}
	var added []formsvc.ID
	for _, title := range titles {
		for _, account := range []formsvc.ID{account, other} {
			c := w.newCampaign(account)
			c.Title = title
			w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
			if account != other {
				added = append(added, c.ID)
			}
		}
	}
	for search, want := range map[string][]int{
		"été": {0, 1}, "T\u00c9 2": {0, 1}, "οδοσ": {2, 3}, "ΔΟς": {2, 3}, "%": {4}, "100": {4, 5}, "R_s": {6}, "rs": {7},
		`\S`: {8}, "'": {9}, "ё": {10, 11}, "e": {4, 5, 6, 7}, "nothing": nil, `"`: nil, "10_": nil,
	} {
		page, err := w.store.Campaigns(w.ctx, formsvc.CampaignQuery{
			AccountID: account, Search: search, Page: formsvc.PageQuery{Ascending: true},
		})
		w.must("Campaigns", err)
		var expected []formsvc.ID
		for _, i := range want {
			expected = append(expected, added[i])
		}
		found := ids(&page, func(c *formsvc.Campaign) formsvc.ID { return c.ID })
		w.same("campaigns with "+search, found, append([]formsvc.ID{}, expected...))
		w.same("total of campaigns with "+search, page.Total, int64(len(want)))
	}
}

// pick returns one of the choices.
func pick[T any](random *rand.Rand, choices ...T) T { return choices[random.IntN(len(choices))] }

func statuses() []string {
	return []string{"pending", "Pending", "validated", "completed", "none has it"}
}

func emails() []string {
	return []string{"ada@example.com", "Ada@Example.com", "ÄDA@example.com", "äda@example.com", "none@example.com"}
}

// fillCampaign adds responses with common statuses, addresses and times.
func (w *world) fillCampaign(random *rand.Rand, c *formsvc.Campaign, n int) []formsvc.Response {
	w.Helper()
	rows := make([]formsvc.Response, n)
	for i := range rows {
		r := w.newResponse(c)
		r.Status = pick(random, statuses()[:4]...)
		r.User.Email = pick(random, emails()[:4]...)
		r.CreatedAt = start().Add(time.Duration(random.IntN(20)) * time.Microsecond)
		r.UpdatedAt = r.CreatedAt.Add(time.Duration(random.IntN(20)) * time.Microsecond)
		w.must("CreateResponse", w.create(r))
		rows[i] = r
	}
	return rows
}

func randomFilter(random *rand.Rand, rows []formsvc.Response) formsvc.ResponseFilter {
	var f formsvc.ResponseFilter
	// Finer than stores keep, so that a store can't compare truncated times.
	moment := func() time.Time { return start().Add(time.Duration(random.IntN(80)) * 500 * time.Nanosecond) }
	if random.IntN(3) == 0 {
		f.Status = []string{pick(random, statuses()...)}
		for range random.IntN(3) {
			f.Status = append(f.Status, pick(random, statuses()...))
		}
	}
	if random.IntN(4) == 0 {
		f.Email = pick(random, emails()...)
		f.AnyCase = random.IntN(2) == 0
	}
	if random.IntN(8) == 0 {
		f.Reference = pick(random, rows...).Reference
	}
	if random.IntN(3) == 0 {
		f.CreatedAfter = moment()
	}
	if random.IntN(3) == 0 {
		f.CreatedBefore = moment().In(time.FixedZone("", 3600))
	}
	if random.IntN(3) == 0 {
		f.UpdatedAfter = moment()
	}
	return f
}

func testFilters(w *world) {
	a := w.addAccount()
	c, other := w.addCampaign(a.ID), w.addCampaign(a.ID)
	random := rand.New(rand.NewPCG(10, 11))
	rows := w.fillCampaign(random, &c, 80)
	w.fillCampaign(random, &other, 20)
	for range 300 {
		f := randomFilter(random, rows)
		q := formsvc.PageQuery{Limit: 1 + random.IntN(30), Ascending: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			q.Offset = random.IntN(20)
		} else {
			q.After = pick(random, rows...).ID
		}
		w.wantFiltered(&c, rows, f, q)
	}
}

// wantFiltered fails the test unless the store returns the rows that match the filter.
func (w *world) wantFiltered(c *formsvc.Campaign, rows []formsvc.Response, f formsvc.ResponseFilter, q formsvc.PageQuery) {
	w.Helper()
	w.wantListed(rows, formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, Filter: f, Page: q})
}

func testFilterTimes(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	var rows []formsvc.Response
	for _, at := range []time.Time{time.Unix(0, 0).UTC(), start(), start().Add(time.Microsecond), nextDay()} {
		r := w.newResponse(&c)
		r.CreatedAt, r.UpdatedAt = at, at
		if at.Equal(nextDay()) {
			r.ID = idAt(at, 1) // never older than CreatedAt
		}
		w.must("CreateResponse", w.create(r))
		rows = append(rows, r)
	}
	for _, at := range []time.Time{
		time.Unix(0, 0), start(), nextDay(), time.Unix(-1, 0),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_998_000, time.UTC),
	} {
		for _, step := range []time.Duration{-time.Microsecond, -time.Nanosecond, 0, time.Nanosecond, time.Microsecond} {
			limit := at.Add(step)
			for _, f := range []formsvc.ResponseFilter{
				{CreatedAfter: limit}, {CreatedBefore: limit}, {UpdatedAfter: limit}, {CreatedAfter: limit, CreatedBefore: limit},
			} {
				w.wantFiltered(&c, rows, f, formsvc.PageQuery{})
			}
		}
	}
}

// Filters match a response's current state, not its first one.
func testFilterAfterUpdate(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	random := rand.New(rand.NewPCG(12, 13))
	rows := w.fillCampaign(random, &c, 20)
	for i := range rows {
		status, email := pick(random, statuses()[:4]...), pick(random, emails()[:4]...)
		at := rows[i].UpdatedAt.Add(time.Duration(random.IntN(20)) * time.Microsecond)
		var err error
		rows[i], err = w.store.UpdateResponse(w.ctx, keyOf(&rows[i]), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status, r.User.Email, r.UpdatedAt = status, email, at
			r.Version++
			return formsvc.Change{}, nil
		})
		w.must("UpdateResponse", err)
	}
	for range 100 {
		w.wantFiltered(&c, rows, randomFilter(random, rows), formsvc.PageQuery{})
	}
}
