package console_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits are set in the editor, follow renamed choices, and aren't lost by the page that publishes the form or by a copy.
func TestLimitsInTheEditor(t *testing.T) {
	w := newSignedIn(t)
	edit, c, stored := w.editable(pets()[1])
	path := "/campaigns/" + string(c.ID)
	places := func(want map[string]int) {
		t.Helper()
		equal(t, len(stored()[0].Places), len(want), "%d limits")
		for value, n := range want {
			equal(t, stored()[0].Places[value], n, value+" has %d places")
		}
	}
	limits := url.Values{"maxResponses": {"100"}, "oncePerEmail": {"true"}, "requireEmail": {"true"}, "places.0.0": {"20"}, "places.0.2": {"3"}}
	w.submit(w.get(edit).says("How often each choice can be chosen", "Stops the same address twice"), edit, limits).is(303)
	places(map[string]int{"Cat": 20, "Bird": 3})
	w.submit(w.get(edit), edit, url.Values{"options.0": {"Kitten\nDog"}}).is(303) // Cat is renamed, Bird removed
	places(map[string]int{"Kitten": 20})
	w.submit(w.get(edit), edit, url.Values{"places.0.0": {"many"}, "maxResponses": {"none"}}).is(422).says("Enter a whole number such as 100")
	w.submit(w.get(edit), edit, url.Values{"places.0.0": {"many"}}).is(422).says("must be between 1 and 1000000")
	w.submit(w.get(edit), edit, url.Values{"requireEmail": nil}).is(422).says("must be false unless the campaign requires an e-mail address")
	w.submit(w.get(path+"/share"), path+"/share", url.Values{"enabled": {"true"}}).is(303)
	got, err := w.svc.Campaigns.Get(t.Context(), c.Key())
	w.must(err)
	if got.Form.MaxResponses != 100 || !got.Form.OncePerEmail || !got.Form.Enabled {
		t.Errorf("the form is %+v", got.Form)
	}
	w.response(&got, "Ada", formsvc.Answer{Name: "pet", Value: []string{"Kitten"}})
	w.get(path).says("1 response of at most 100", "Which pet?, Kitten: 19 of 20")
	w.submit(w.get(path), path+"/duplicate", nil).is(303)
	list, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID})
	w.must(err)
	if newest := list.Items[0]; newest.Form.MaxResponses != 100 || newest.Modules[0].Places["Kitten"] != 20 {
		t.Errorf("the copy is %+v", newest)
	}
	w.submit(w.get(edit), edit, url.Values{"type.0": {"text"}}).is(409).says("loses the choices")
	w.submit(w.get(edit), edit, url.Values{"maxResponses": {"1"}}).is(303)
	spam := w.held(&got, "Eve", formsvc.HeldTrap)
	at := path + "/responses/" + string(spam.ID)
	w.submit(w.get(at), at+"/status", url.Values{"status": {"pending"}}).is(409).says("All places are taken")
}

// The editor shows and reads opening times in the zone of the campaign, in place of the visitor's, and refuses times that no clock shows.
func TestCampaignZone(t *testing.T) {
	w := newSignedIn(t)
	w.cookie("formsvc_zone", "Pacific/Auckland")
	edit, c, _ := w.editable()
	set := func(status int, fields url.Values) *answer {
		t.Helper()
		return w.submit(w.get(edit), edit, fields).is(status)
	}
	closes := func(want string) {
		t.Helper()
		got, err := w.svc.Campaigns.Get(t.Context(), c.Key())
		w.must(err)
		equal(t, got.ClosesAt.UTC().Format(time.RFC3339), want, "closes at %s")
	}
	set(303, url.Values{"closesAt": {"2027-01-10T08:00"}})
	closes("2027-01-09T19:00:00Z")
	set(303, url.Values{"timeZone": {"Europe/Berlin"}}) // the time stays as it is shown
	closes("2027-01-10T07:00:00Z")
	w.get(edit).says("Closes (Europe/Berlin, CET)")
	set(422, url.Values{"closesAt": {"2027-03-28T02:30"}}).says("there is no such time")
	set(422, url.Values{"closesAt": {"soon"}}).says("in the time zone Europe/Berlin")
	set(422, url.Values{"timeZone": {"Berlin"}}).says("the name of a time zone such as Europe/Berlin")
	set(303, url.Values{"closesAt": {"2027-03-28T03:00"}})
	closes("2027-03-28T01:00:00Z")
	set(303, url.Values{"timeZone": {"America/Santiago"}, "closesAt": {"2027-09-05"}}) // has no midnight
	closes("2027-09-05T04:00:00Z")
	for zone, at := range map[string]string{"Europe/Berlin": "2027-10-31T00:30:00Z", "America/New_York": "2027-11-07T05:30:00Z", "Australia/Lord_Howe": "2027-04-03T14:45:00Z"} {
		text := must(time.Parse(time.RFC3339, at)).In(must(time.LoadLocation(zone))).Format("2006-01-02T15:04")
		set(303, url.Values{"timeZone": {zone}, "closesAt": {text}}) // comes twice
		closes(at)
	}
	set(303, url.Values{"timeZone": {"Europe/Berlin"}, "closesAt": {"2027-10-31T02:30"}})
	w.get(edit).says("Closes (Europe/Berlin, CEST)", "A time that clocks show twice is the first")
	set(303, url.Values{"closesAt": {"2027-10-31T02:30"}})
	closes("2027-10-31T00:30:00Z")
	// The seconds, which the page doesn't show, stay: with another zone, and after somebody else set the zone meanwhile.
	store := func(zone, at string) {
		t.Helper()
		in := must(w.svc.Campaigns.Get(t.Context(), c.Key())).CampaignInput
		in.TimeZone, in.ClosesAt, in.IfVersion = zone, must(time.Parse(time.RFC3339, at)), 0
		must(w.svc.Campaigns.Replace(t.Context(), c.Key(), in))
	}
	store("Europe/Berlin", "2027-01-10T07:00:59Z")
	page := w.get(edit)
	store("Asia/Tokyo", "2027-01-10T07:00:59Z")
	page = w.submit(page, edit, url.Values{"timeZone": {"Europe/Berlin"}}).is(409)
	w.submit(page, edit, nil).is(303)
	closes("2027-01-10T07:00:59Z")
	set(303, url.Values{"timeZone": {"Asia/Tokyo"}})
	closes("2027-01-09T23:00:59Z")
}
