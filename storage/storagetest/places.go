package storagetest

import (
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
)

var (
	errChoice = errors.New("no place at the choice")
	errTotal  = errors.New("no place at all")
)

// placed returns a change that takes a place of all, and one at each of the keys. Each has the same number of places.
func placed(most int, keys ...string) formsvc.Change {
	list := []formsvc.Place{{Key: "", Max: most, Full: errTotal}}
	for _, key := range keys {
		list = append(list, formsvc.Place{Key: key, Max: most, Full: errChoice})
	}
	return formsvc.Change{Places: list}
}

// places lets many responses race for few places, some of them by a change, while others without limits are created.
func (w *world) places(stores []Store) {
	const most, tries = 10, 100
	sc, other := w.addScene(), w.addScene().campaign
	c := &sc.campaign
	spam := make([]formsvc.Response, tries)
	for i := range spam {
		spam[i] = w.newResponse(c)
		spam[i].Status = formsvc.StatusSpam
		w.must("CreateResponse of spam", w.store.CreateResponse(w.ctx, spam[i], 1, formsvc.Change{Places: []formsvc.Place{}}))
	}
	release := func(s Store, r *formsvc.Response, status string, change formsvc.Change) error {
		return rewrite(w.ctx, s.UpdateResponse, r.Key(), change, func(r *formsvc.Response) { r.Status, r.Version = status, r.Version+1 })
	}
	won := w.race(tries, errTotal, func(i int) error {
		s := stores[i%len(stores)]
		if i%4 == 0 {
			w.check("a neighbour", s.CreateResponse(w.ctx, w.newResponse(&other), 1, none))
		}
		if i%3 == 0 {
			return release(s, &spam[i], formsvc.StatusPending, placed(most))
		}
		return s.CreateResponse(w.ctx, w.newResponse(c), 1, placed(most))
	})
	w.wantTaken(c, map[string]int64{"": most})
	if won != most {
		w.Errorf("%d responses got one of %d places", won, most)
	}
	w.wantError("beyond", release(w.store, &spam[1], formsvc.StatusPending, placed(most)), errTotal)
	won = w.race(tries, errChoice, func(i int) error { // one address, in a campaign with room
		return stores[i%len(stores)].CreateResponse(w.ctx, w.newResponse(c), 1, formsvc.Change{Places: []formsvc.Place{{Key: "a", Max: 1, Full: errChoice}}})
	})
	if w.wantTaken(c, map[string]int64{"": most + 1, "a": 1}); won != 1 {
		w.Errorf("%d responses got the only place", won)
	}
}

func (w *world) wantTaken(c *formsvc.Campaign, want map[string]int64) {
	w.Helper()
	got := must(w.store.Taken(w.ctx, c.Key(), []string{"", "a", "b", "c"}))(w, "Taken")
	w.same("places taken", fmt.Sprint(got), fmt.Sprint(want))
}

// testPlaces takes and frees places one by one.
func testPlaces(w *world) {
	sc := w.addScene()
	c, other := &sc.campaign, w.addScene().campaign
	create := func(of *formsvc.Campaign, change formsvc.Change) (formsvc.Response, error) {
		r := w.newResponse(of)
		return r, w.store.CreateResponse(w.ctx, r, 1, change)
	}
	first := must(create(c, placed(2, "a")))(w, "CreateResponse")
	second := must(create(c, placed(2, "b")))(w, "CreateResponse")
	w.wantError("beyond the total", errorOf(create(c, placed(2, "c"))), errTotal)
	w.check("in another campaign", errorOf(create(&other, placed(2, "a", "b"))))
	move := func(key string, max int) error {
		change := formsvc.Change{Places: []formsvc.Place{{Max: -1}, {Key: key, Max: max, Full: errChoice}}}
		return rewrite(w.ctx, w.store.UpdateResponse, second.Key(), change, func(r *formsvc.Response) { r.Version++ })
	}
	w.wantError("to a full choice", move("a", 1), errChoice)
	w.wantTaken(c, map[string]int64{"": 2, "a": 1, "b": 1})
	w.check("to the same choice", move("b", 1))
	w.check("to a full choice in any case", move("a", -1))
	w.wantTaken(c, map[string]int64{"": 2, "a": 2})
	w.must("DeleteResponse", errorOf(w.store.DeleteResponse(w.ctx, first.Key(), nil)))
	w.wantTaken(c, map[string]int64{"": 1, "a": 1})
	w.must("Erase", errorOf(w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: second.AccountID, Responses: []formsvc.ResponseKey{second.Key()}})))
	w.wantTaken(c, map[string]int64{"": 0})
	list := []formsvc.NewResponse{{Response: w.newResponse(c), Places: placed(-1, "a", "b").Places}, {Response: w.newResponse(c)}}
	w.must("ImportResponses", errorOf(w.store.ImportResponses(w.ctx, c.Key(), 1, list, 0)))
	w.wantTaken(c, map[string]int64{"": 2, "a": 1, "b": 1})
	recount := formsvc.Recount{Campaign: c.Key(), Places: func(r *formsvc.Response) []formsvc.Place {
		w.same("the campaign of a response", r.CampaignID, c.ID)
		return []formsvc.Place{{Key: ""}, {Key: "c"}}
	}}
	change := formsvc.Change{Recount: &recount}
	w.must("UpdateCampaign", rewrite(w.ctx, w.store.UpdateCampaign, c.Key(), change, func(c *formsvc.Campaign) { c.Version++ }))
	w.wantTaken(c, map[string]int64{"": 2, "c": 2})
	w.wantError("CreateResponse with an old version", errorOf(create(c, placed(2, "c"))), formsvc.ErrStale)
	change = formsvc.Change{Places: []formsvc.Place{{Max: -1}}, CampaignVersion: 1}
	update := func() error {
		return rewrite(w.ctx, w.store.UpdateResponse, list[1].Response.Key(), change, func(r *formsvc.Response) { r.Version++ })
	}
	w.wantError("UpdateResponse with an old version", update(), formsvc.ErrStale)
	change.CampaignVersion = 2
	w.check("UpdateResponse with the version", update())
	w.wantTaken(c, map[string]int64{"": 2, "c": 1})
}
