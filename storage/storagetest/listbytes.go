package storagetest

import (
	"math/rand/v2"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// testSizedPages reads pages of campaigns and of comments that end where their sizes reach
// PageQuery.MaxBytes, and checks that each page says whether records follow, that the total
// stays, and that all pages together have every record.
func testSizedPages(w *world) {
	random := rand.New(rand.NewPCG(18, 19))
	account := w.addAccount()
	var campaigns []formsvc.Campaign
	for range 20 {
		c := w.newCampaign(account.ID)
		c.Title = pick(random, "tall", "small")
		c.Description = strings.Repeat("x", random.IntN(2_000))
		c.Modules = []formsvc.Module{{Name: "m", Type: formsvc.ChoiceModule, Options: make([]string, 1+random.IntN(20))}}
		for i := range c.Modules[0].Options {
			c.Modules[0].Options[i] = strings.Repeat("o", i+1)
		}
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
		campaigns = append(campaigns, c)
	}
	r, _ := w.addResponse(&campaigns[0])
	var comments []formsvc.Comment
	for range 20 {
		c := w.newComment(&r)
		c.Body = strings.Repeat("x", 1+random.IntN(2_000))
		w.must("CreateComment", w.createComment(c))
		comments = append(comments, c)
	}
	var large []formsvc.Campaign
	for i := range campaigns {
		if campaigns[i].Title == "tall" {
			large = append(large, campaigns[i])
		}
	}
	for _, bytes := range []int{1, campaigns[0].Size(), campaigns[19].Size(), 5_000, 1 << 20} {
		for _, ascending := range []bool{true, false} {
			page := formsvc.PageQuery{Limit: 1 + random.IntN(30), Ascending: ascending, MaxBytes: bytes}
			wantSizedPages(w, page, campaigns, (*formsvc.Campaign).Size, func(c *formsvc.Campaign) formsvc.ID { return c.ID },
				func(q formsvc.PageQuery) (formsvc.Page[formsvc.Campaign], error) {
					return w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: account.ID, Page: q})
				})
			wantSizedPages(w, page, large, (*formsvc.Campaign).Size, func(c *formsvc.Campaign) formsvc.ID { return c.ID },
				func(q formsvc.PageQuery) (formsvc.Page[formsvc.Campaign], error) {
					return w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: account.ID, Search: "tall", Page: q})
				})
			wantSizedPages(w, page, comments, (*formsvc.Comment).Size, func(c *formsvc.Comment) formsvc.ID { return c.ID },
				func(q formsvc.PageQuery) (formsvc.Page[formsvc.Comment], error) {
					return w.store.Comments(w.ctx, formsvc.CommentQuery{
						AccountID: account.ID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
					})
				})
		}
	}
}

// wantSizedPages reads a list to its end and compares each page with what it should be. rows
// are the records, oldest first.
func wantSizedPages[T any](
	w *world, q formsvc.PageQuery, rows []T, size func(*T) int, id func(*T) formsvc.ID,
	list func(formsvc.PageQuery) (formsvc.Page[T], error),
) {
	w.Helper()
	rest := make([]*T, len(rows))
	for i := range rows {
		at := i
		if !q.Ascending {
			at = len(rows) - 1 - i
		}
		rest[i] = &rows[at]
	}
	for {
		n, sum := 0, 0
		for n < len(rest) && n < q.Limit && sum < q.MaxBytes {
			sum += size(rest[n])
			n++
		}
		page, err := list(q)
		w.must("list", err)
		if len(page.Items) != n || page.More != (n < len(rest)) || page.Total != int64(len(rows)) {
			w.Fatalf("a page of at most %d records and %d bytes has %d, more %t, total %d; want %d, %t, %d",
				q.Limit, q.MaxBytes, len(page.Items), page.More, page.Total, n, n < len(rest), len(rows))
		}
		for i := range page.Items {
			if got, want := id(&page.Items[i]), id(rest[i]); got != want {
				w.Fatalf("record %d of the page is %s, want %s", i, got, want)
			}
		}
		if rest = rest[n:]; len(rest) == 0 {
			return
		}
		q.After = id(&page.Items[n-1])
	}
}
