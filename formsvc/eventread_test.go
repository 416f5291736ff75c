package formsvc_test

import (
	"slices"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// someID is the ID of no record.
const someID formsvc.ID = "01890000-0000-7000-8000-000000000000"

func (w *world) recent(limit int) []formsvc.Event {
	w.tb.Helper()
	events, err := w.svc.Events.Recent(w.ctx, formsvc.RecentQuery{AccountID: w.account, Limit: limit})
	if err != nil {
		w.tb.Fatal(err)
	}
	return events
}

func (w *world) about(r *formsvc.Response, limit int) []formsvc.Event {
	w.tb.Helper()
	events, err := w.svc.Events.About(w.ctx, responseKey(r), limit)
	if err != nil {
		w.tb.Fatal(err)
	}
	return events
}

// Recent and About return real events, without test events.
func TestRecentEventsAndEventsAboutAResponse(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook()
	r := w.submitted(&c, answer("a", "1"))
	other := w.submitted(&c)
	w.updated(&r, formsvc.ResponsePatch{Status: new("validated")})
	test, err := w.svc.Webhooks.Test(w.ctx, hookKey(&hook))
	if err != nil {
		t.Fatal(err)
	}
	made := w.store.take()
	if types := eventTypes(made); !slices.Equal(types, []formsvc.EventType{
		webhook.ResponseCreated, webhook.ResponseCreated, webhook.ResponseStatusChanged,
	}) {
		t.Fatalf("made %v", types)
	}
	same := func(what string, got []formsvc.Event, want ...formsvc.Event) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b formsvc.Event) bool {
			return a.ID == b.ID && a.Type == b.Type && string(a.Payload) == string(b.Payload) && a.ResponseID == b.ResponseID
		}) {
			t.Errorf("%s: %d events, want %d or others", what, len(got), len(want))
		}
	}
	same("newest", w.recent(100), made[2], made[1], made[0])
	same("the newest", w.recent(1), made[2])
	same("about a response", w.about(&r, 100), made[0], made[2])
	same("the first about it", w.about(&r, 1), made[0])
	same("about another", w.about(&other, 100), made[1])

	for _, e := range made {
		got, err := w.svc.Events.Get(w.ctx, w.account, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		same("one", []formsvc.Event{got}, e)
	}
	got, err := w.svc.Events.Get(w.ctx, w.account, test.EventID)
	if err != nil || !got.Test || len(got.Payload) == 0 {
		t.Errorf("the test event is %+v, %v", got, err)
	}
}

func TestRecentEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	for i := range 1_005 {
		w.updated(&r, formsvc.ResponsePatch{Status: new([]string{"validated", "pending"}[i%2])})
	}
	for limit, want := range map[int]int{-5: 1, 0: 1, 1: 1, 7: 7, 100: 100, 101: 100, 1 << 40: 100} {
		if n := len(w.recent(limit)); n != want {
			t.Errorf("%d of the newest with a limit of %d, want %d", n, limit, want)
		}
	}
	for limit, want := range map[int]int{-5: 1, 0: 1, 1: 1, 7: 7, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		if n := len(w.about(&r, limit)); n != want {
			t.Errorf("%d about a response with a limit of %d, want %d", n, limit, want)
		}
	}
}
