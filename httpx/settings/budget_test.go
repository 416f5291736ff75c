package settings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// An answer that doesn't fit isn't shown as one without a value.
func TestAnswersBeyondTheLimitAreCut(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Long")
	var answers []formsvc.Answer
	for i := range 100 {
		answers = append(answers, formsvc.Answer{Name: fmt.Sprint("m-", i), Value: []string{strings.Repeat("&", 300)}})
	}
	r := w.response(&campaign, "Ada", answers...)
	w.get("/campaigns/"+string(campaign.ID)+"/responses/"+string(r.ID)).is(200).says("m-0", "The answers are cut here").lacks("no value", "m-99")
}

// If not everything fits, the page shows the newest records and the number of the others.
func TestNewestIsShown(t *testing.T) {
	w := newSignedIn(t)
	hook := w.hook(w.receiver(500, "no"))
	campaign := w.campaign("Busy")
	r := w.response(&campaign, "Ada")
	w.drain()
	key := formsvc.ResponseKey{AccountID: w.account.ID, CampaignID: campaign.ID, ID: r.ID}
	one := "/campaigns/" + string(campaign.ID) + "/responses/" + string(r.ID)
	w.get(one).lacks("older ", "Later ")
	for i := range 101 {
		_, err := w.svc.Files.Upload(t.Context(), key, formsvc.FileInput{Name: fmt.Sprint("f-", i, "."), Content: strings.NewReader("x")})
		w.must(err)
		if _, err := w.svc.Signatures.Create(t.Context(), key, formsvc.SignatureInput{Signer: r.User, Provider: fmt.Sprint("p-", i, ".")}); err != nil {
			t.Fatal(err)
		}
		status := fmt.Sprint("s-", i)
		if _, err := w.svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: &status}); err != nil {
			t.Fatal(err)
		}
		if i >= 60 {
			continue
		}
		if _, err := w.svc.Comments.Create(t.Context(), key, formsvc.CommentInput{Body: fmt.Sprint("c-", i, ".")}); err != nil {
			t.Fatal(err)
		}
	}
	a := w.get(one).is(200).says(
		"1 older file isn't shown", "f-1 ", "f-100 ", "1 older signature isn't shown", "p-1.", "p-100.",
		"10 older comments aren't shown", "c-10.", "c-59.", "204 older events aren't shown", "status s-100",
	).lacks("f-0<", "p-0.", "c-9.", "response.created", ">status s-50<", "later ")
	if strings.Index(a.text(), "c-10.") > strings.Index(a.text(), "c-59.") {
		t.Errorf("not as people read: %s", a.text())
	}

	delivery := w.get("/webhooks/" + string(hook.ID)).linkTo("/deliveries/")
	w.get(delivery).says("1. Answered", "2. Answered").lacks("older ")
	for range 10 {
		w.submit(w.get(delivery), delivery+"/redeliver", nil).is(303)
		w.drain()
	}
	w.get(delivery).says("2 older attempts aren't shown", "3. Answered", "12. Answered").lacks(">2. Answered")
}
