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
		_, err := s.UpdateResponse(w.ctx, r.Key(), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status, r.Version = status, r.Version+1
			return change, nil
		})
		return err
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
	got, err := w.store.Taken(w.ctx, c.Key(), []string{"", "a", "b", "c"})
	w.must("Taken", err)
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
	first, err := create(c, placed(2, "a"))
	w.must("CreateResponse", err)
	second, err := create(c, placed(2, "b"))
	w.must("CreateResponse", err)
	_, err = create(c, placed(2, "c"))
	w.wantError("beyond the total", err, errTotal)
	_, err = create(&other, placed(2, "a", "b"))
	w.check("in another campaign", err)
	move := func(key string, max int) error {
		_, err := w.store.UpdateResponse(w.ctx, second.Key(), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Version++
			return formsvc.Change{Places: []formsvc.Place{{Max: -1}, {Key: key, Max: max, Full: errChoice}}}, nil
		})
		return err
	}
	w.wantError("to a full choice", move("a", 1), errChoice)
	w.wantTaken(c, map[string]int64{"": 2, "a": 1, "b": 1})
	w.check("to the same choice", move("b", 1))
	w.check("to a full choice in any case", move("a", -1))
	w.wantTaken(c, map[string]int64{"": 2, "a": 2})
	_, err = w.store.DeleteResponse(w.ctx, first.Key(), nil)
	w.must("DeleteResponse", err)
	w.wantTaken(c, map[string]int64{"": 1, "a": 1})
	_, err = w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: second.AccountID, Responses: []formsvc.ResponseKey{second.Key()}})
	w.must("Erase", err)
	w.wantTaken(c, map[string]int64{"": 0})
	list := []formsvc.NewResponse{{Response: w.newResponse(c), Places: placed(-1, "a", "b").Places}, {Response: w.newResponse(c)}}
	_, err = w.store.ImportResponses(w.ctx, c.Key(), 1, list, 0)
	w.must("ImportResponses", err)
	w.wantTaken(c, map[string]int64{"": 2, "a": 1, "b": 1})
	_, err = w.store.UpdateCampaign(w.ctx, c.Key(), func(c *formsvc.Campaign) (formsvc.Change, error) {
		c.Version++
		return formsvc.Change{Recount: &formsvc.Recount{Campaign: c.Key(), Places: func(r *formsvc.Response) []formsvc.Place {
			w.same("the campaign of a response", r.CampaignID, c.ID)
			return []formsvc.Place{{Key: ""}, {Key: "c"}}
		}}}, nil
	})
	w.must("UpdateCampaign", err)
	w.wantTaken(c, map[string]int64{"": 2, "c": 2})
	_, err = create(c, placed(2, "c"))
	w.wantError("CreateResponse with an old version", err, formsvc.ErrStale)
}
