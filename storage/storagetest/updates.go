package storagetest

import (
	"runtime"
	"strconv"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

func incrementCampaign(w *world, store Store, c *formsvc.Campaign) error {
	_, err := store.UpdateCampaign(w.ctx, campaignKey(c), func(c *formsvc.Campaign) error {
		n, _ := strconv.Atoi(c.Description)
		runtime.Gosched() // a store that interleaves here loses updates
		c.Description = strconv.Itoa(n + 1)
		c.Version++
		return nil
	})
	return err
}

func incrementResponse(w *world, store Store, r *formsvc.Response) error {
	_, err := store.UpdateResponse(w.ctx, keyOf(r), func(r *formsvc.Response) (formsvc.Change, error) {
		n, _ := strconv.Atoi(r.User.LastName)
		runtime.Gosched()
		r.User.LastName = strconv.Itoa(n + 1)
		r.Version++
		event := w.newEvent(r)
		event.Payload = []byte(r.User.LastName)
		return formsvc.Change{Events: []formsvc.Event{event}}, nil
	})
	return err
}

// testCountWhileUpdating adds responses while their campaign is updated: each is counted or stale, and no update loses
// the count.
func testCountWhileUpdating(w *world) {
	sc := w.addScene()
	var updates, creates sync.WaitGroup
	done := make(chan struct{})
	updates.Go(func() {
		for range 200 {
			select {
			case <-done:
				return
			default:
				w.check("UpdateCampaign", incrementCampaign(w, w.store, &sc.campaign))
			}
		}
	})
	counts := make([]int64, 8)
	for i := range counts {
		creates.Go(func() {
			for range 25 {
				c, err := w.store.Campaign(w.ctx, campaignKey(&sc.campaign))
				w.check("Campaign", err)
				r := w.newResponse(&sc.campaign)
				err = w.store.CreateResponse(w.ctx, r, c.Version, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}})
				if err == nil {
					counts[i]++
				} else {
					w.wantError("CreateResponse", err, formsvc.ErrStale)
				}
			}
		})
	}
	creates.Wait()
	close(done)
	updates.Wait()
	var want int64
	for _, n := range counts {
		want += n
	}
	w.wantCount(&sc.campaign, &sc.hook, want)
}

// wantCount fails the test unless the campaign has n responses, counts n, and has raised n events.
func (w *world) wantCount(c *formsvc.Campaign, hook *formsvc.Webhook, n int64) {
	w.Helper()
	got, err := w.store.Campaign(w.ctx, campaignKey(c))
	w.must("Campaign", err)
	page, err := w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID})
	w.must("Responses", err)
	rows, told := int64(len(w.responses(c))), int64(len(w.deliveries(hook)))
	if got.ResponseCount != n || page.Total != n || rows != n || told != n {
		w.Errorf("%d responses: counted %d, total %d, listed %d, told of %d", n, got.ResponseCount, page.Total, rows, told)
	}
}
