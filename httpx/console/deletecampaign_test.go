package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A campaign with responses is deleted after its title was typed, in steps that begin with closing it.
func TestCampaignIsDeletedWithResponses(t *testing.T) {
	w := newSignedIn(t)
	w.pages.SetDeleteTime(0) // one a step
	const title = "  Say \"hi\"\n<b>ok</b> "
	c, other := w.campaign(title), w.campaign("Other")
	path := "/campaigns/" + string(c.ID)
	for i := range 4 {
		r := w.response(&c, fmt.Sprint("person-", i))
		_, err := w.svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("x")})
		w.must(err)
	}
	held, err := w.svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}, Held: formsvc.HeldTrap})
	w.must(err)
	kept := w.response(&other, "kept")
	w.get(path+"/delete").is(200).says("All 5 responses are deleted too, with files, comments and signatures", "still hold answers")
	page := w.get(path).says("All 5 responses are deleted too")
	w.submit(page, path+"/delete", nil).is(409).says("This campaign has responses")
	for _, typed := range []string{"Say", "other", "say \"hi\" <b>ok</b>"} {
		again := w.submit(page, path+"/delete", url.Values{"title": {typed}}).is(422).says("That isn't the title")
		page = again
	}
	now, err := w.svc.Campaigns.Get(t.Context(), c.Key())
	if err != nil || now.ResponseCount != 5 || now.Status != formsvc.CampaignOpen {
		t.Fatalf("a wrong title changes it: %+v, %v", now, err)
	}
	page = w.submit(page, path+"/delete", url.Values{"title": {`Say "hi" <b>ok</b>`}}).is(200).says("Deleted 1 of 5 responses.", "Go on")
	_, err = w.svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
	if err == nil {
		t.Error("a response arrives while they are deleted")
	}
	w.get(path).is(200).says("closed", "4 responses") // it can be left, and gone on with
	for i := 2; i < 5; i++ {
		page = w.submit(page, path+"/delete", nil).is(200).says(fmt.Sprintf("Deleted %d of 5 responses.", i))
	}
	w.pages.SetDeleteTime(1 << 40)
	w.submit(page, path+"/delete", nil).is(303).leadsTo("/campaigns").says("Campaign deleted", "Other")
	w.get(path).is(404)
	w.submit(page, path+"/delete", nil).is(404)
	if _, err := w.svc.Responses.Get(t.Context(), held.Key()); err == nil {
		t.Error("the held response is left")
	}
	if _, err := w.svc.Responses.Get(t.Context(), kept.Key()); err != nil {
		t.Errorf("a response of another campaign: %v", err)
	}

	// One that comes after the page was shown without responses is asked for, not lost.
	c = w.campaign("Late")
	path = "/campaigns/" + string(c.ID)
	page = w.get(path).says("It has no responses")
	w.response(&c, "late")
	page = w.submit(page, path+"/delete", nil).is(409).says("This campaign has responses")
	w.submit(page, path+"/delete", url.Values{"title": {"Late"}}).is(303).leadsTo("/campaigns")
	for range 60 {
		w.response(&other, "many")
	}
	path = "/campaigns/" + string(other.ID)
	w.submit(w.get(path), path+"/delete", url.Values{"title": {"Other"}}).is(303).leadsTo("/campaigns").says("No campaigns yet")
}
