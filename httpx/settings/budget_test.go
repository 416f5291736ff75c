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

// crowd adds n records of every kind to a response, whose texts are made of a number.
func (w *world) crowd(r *formsvc.Response, n int, text func(prefix string, i int) string) {
	w.t.Helper()
	ctx := w.t.Context()
	for i := range n {
		_, err := w.svc.Files.Upload(ctx, r.Key(), formsvc.FileInput{Name: text("f-", i), Module: text("m-", i), Content: strings.NewReader("x")})
		w.must(err)
		_, err = w.svc.Signatures.Create(ctx, r.Key(), formsvc.SignatureInput{Signer: r.User, Provider: text("p-", i)})
		w.must(err)
		status := text("s-", i)
		_, err = w.svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: &status})
		w.must(err)
		_, err = w.svc.Comments.Create(ctx, r.Key(), formsvc.CommentInput{Body: text("c-", i)})
		w.must(err)
	}
}

// If not everything fits, the page shows the newest records and the number of the others.
func TestNewestIsShown(t *testing.T) {
	w := newSignedIn(t)
	hook := w.hook(w.receiver(500, "no"))
	campaign := w.campaign("Busy")
	r := w.response(&campaign, "Ada")
	w.drain()
	one := "/campaigns/" + string(campaign.ID) + "/responses/" + string(r.ID)
	w.get(one).lacks("older ", "Later ")
	w.crowd(&r, 101, func(prefix string, i int) string { return fmt.Sprint(prefix, i, ".") })
	a := w.get(one).is(200).says(
		"1 older file isn't shown", "f-1 ", "f-100 ", "1 older signature isn't shown", "p-1.", "p-100.",
		"51 older comments aren't shown", "c-51.", "c-100.", "204 older events aren't shown", "status s-100",
	).lacks("f-0<", "p-0.", "c-50.", "response.created", ">status s-50.<", "later ")
	if strings.Index(a.text(), "c-51.") > strings.Index(a.text(), "c-100.") {
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
