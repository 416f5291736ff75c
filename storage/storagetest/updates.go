package storagetest

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

func updateTests() []test {
	return []test{
		{"decide gets the whole record", testDecideSees},
		{"error of decide changes nothing", testDecideFails},
		{"same version writes nothing", testDecideKeeps},
		{"no campaign update is lost", testCampaignIncrements},
		{"no response update is lost", testResponseIncrements},
		{"stale campaign version is refused", testStale},
		{"campaign updates keep the count", testCountWhileUpdating},
		{"decide gets the whole webhook", testWebhookDecideSees},
		{"decide gets the whole account", testAccountDecideSees},
		{"error of decide changes no webhook", testWebhookDecideFails},
		{"same version writes no webhook", testWebhookDecideKeeps},
		{"every field of a webhook", testUpdateWebhook},
		{"current subscription gets the events", testUpdateListens},
		{"every field of an account", testUpdateAccount},
		{"no webhook update is lost", testWebhookIncrements},
		{"no account update is lost", testAccountIncrements},
	}
}

func testDecideSees(w *world) {
	sc := w.addScene()
	c := w.fullCampaign(sc.account.ID)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	r, _ := w.addResponse(&c)
	c.ResponseCount = 1
	_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(got *formsvc.Campaign) error {
		w.same("campaign", *got, c)
		return nil
	})
	w.must("UpdateCampaign", err)
	_, err = w.store.UpdateResponse(w.ctx, keyOf(&r), func(got *formsvc.Response) (formsvc.Change, error) {
		w.same("response", *got, r)
		return formsvc.Change{}, nil
	})
	w.must("UpdateResponse", err)
}

func testDecideFails(w *world) {
	sc := w.addScene()
	c := w.fullCampaign(sc.account.ID)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	r, _ := w.addResponse(&c)
	before := w.snapshot()
	var event formsvc.Event
	refusal := errors.New("refused")
	for _, want := range []error{refusal, formsvc.ErrStale, &formsvc.TransitionError{From: "a", To: "b"}} {
		_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
			spoilCampaign(c)
			c.Title, c.Metadata["new"] = "spoiled", "spoiled"
			c.Version++
			return want
		})
		w.wantError("UpdateCampaign", err, want)
		_, err = w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status, r.Answers = "spoiled", formsvc.NewAnswers()
			r.Version++
			event = w.newEvent(r)
			return formsvc.Change{Events: []formsvc.Event{event}}, want
		})
		w.wantError("UpdateResponse", err, want)
		if _, ok := errors.AsType[*formsvc.TransitionError](want); ok && !errors.Is(err, formsvc.ErrTransition) {
			w.Errorf("UpdateResponse: %v is no longer the function's error", err)
		}
		w.noEvents("UpdateResponse whose function failed", event)
	}
	w.unchanged("updates whose functions failed", &before)
}

func testDecideKeeps(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	var event formsvc.Event
	gotCampaign, err := w.store.UpdateCampaign(w.ctx, campaignKey(&sc.campaign), func(c *formsvc.Campaign) error {
		c.Title, c.UpdatedAt = "not written", nextDay()
		return nil
	})
	w.must("UpdateCampaign", err)
	w.same("campaign as not updated", gotCampaign, before.Campaigns[sc.account.ID][0])
	got, err := w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
		r.Status, r.UpdatedAt = "not written", nextDay()
		event = w.newEvent(r)
		return formsvc.Change{Events: []formsvc.Event{event}}, nil
	})
	w.must("UpdateResponse", err)
	w.same("response as not updated", got, r)
	w.unchanged("updates without a new version", &before)
	w.noEvents("UpdateResponse without a new version", event)
}

// Sizes of the increment tests.
const (
	incrementers = 8
	increments   = 25
)

// increment has many goroutines call step at once.
func (w *world) increment(step func() error) {
	w.Helper()
	var all sync.WaitGroup
	for range incrementers {
		all.Go(func() {
			for range increments {
				if err := step(); err != nil {
					w.Errorf("increment: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

func testCampaignIncrements(w *world) {
	sc := w.addScene()
	w.increment(func() error { return incrementCampaign(w, w.store, &sc.campaign) })
	w.wantCampaignIncrements(w.store, &sc.campaign)
}

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

func (w *world) wantCampaignIncrements(store Store, c *formsvc.Campaign) {
	w.Helper()
	got, err := store.Campaign(w.ctx, campaignKey(c))
	w.must("Campaign", err)
	const n = incrementers * increments
	if got.Description != strconv.Itoa(n) || got.Version != n+1 {
		w.Errorf("after %d increments the campaign says %q and has version %d", n, got.Description, got.Version)
	}
}

func testResponseIncrements(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	w.increment(func() error { return incrementResponse(w, w.store, &r) })
	w.wantResponseIncrements(w.store, &r, &sc.hook)
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

// wantResponseIncrements also checks that each increment raised exactly the event of the function's last run.
func (w *world) wantResponseIncrements(store Store, r *formsvc.Response, hook *formsvc.Webhook) {
	w.Helper()
	const n = incrementers * increments
	got, err := store.Response(w.ctx, keyOf(r))
	w.must("Response", err)
	if got.User.LastName != strconv.Itoa(n) || got.Version != n+1 {
		w.Errorf("after %d increments the response says %q and has version %d", n, got.User.LastName, got.Version)
	}
	var events []string
	for _, d := range w.deliveries(hook) {
		events = append(events, string(d.EventID))
	}
	payloads, err := store.Payloads(w.ctx, events)
	w.must("Payloads", err)
	seen := make(map[string]bool)
	for _, payload := range payloads {
		seen[string(payload.Body)] = true
	}
	for i := range n {
		if !seen[strconv.Itoa(i+1)] {
			w.Errorf("increment %d has no event", i+1)
		}
	}
	if len(events) != n+1 {
		w.Errorf("%d deliveries of %d events", len(events), n+1)
	}
}

func testStale(w *world) {
	sc := w.addScene()
	before := w.snapshot()
	stale := func(version int64) {
		r := w.newResponse(&sc.campaign)
		e := w.newEvent(&r)
		err := w.store.CreateResponse(w.ctx, r, version, formsvc.Change{Events: []formsvc.Event{e}})
		w.wantError(fmt.Sprintf("CreateResponse for version %d", version), err, formsvc.ErrStale)
		w.noEvents("CreateResponse for another version", e)
	}
	stale(0)
	stale(2)
	w.unchanged("responses for another version", &before)
	at := nextDay()
	_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&sc.campaign), func(c *formsvc.Campaign) error {
		c.Version, c.UpdatedAt = 2, at
		return nil
	})
	w.must("UpdateCampaign", err)
	stale(1)
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, w.newResponse(&sc.campaign), 2, formsvc.Change{}))
	sc.campaign.Version, sc.campaign.UpdatedAt, sc.campaign.ResponseCount = 2, at, 1
	w.same("campaigns", w.campaigns(sc.account.ID), []formsvc.Campaign{sc.campaign})
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
