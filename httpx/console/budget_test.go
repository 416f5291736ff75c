package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

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
		"51 older comments aren't shown", "c-51.", "c-100.", "204 older events aren't shown", "Status changed to s-100",
	).lacks("f-0<", "p-0.", "c-50.", "Submitted by", "changed to s-50.", "later ")
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

// No page exceeds 150 KB, whatever is stored, and every part of one gets its reserved space.
func TestPagesAreBounded(t *testing.T) {
	w := newSignedIn(t)
	long := func(n int) string { return strings.Repeat("&", n) } // which no other character exceeds in HTML
	hook := w.hook(w.receiver(500, long(5000)) + "/?" + long(2000))
	in := formsvc.CampaignInput{Title: long(500), Description: long(10_000)}
	var answers []formsvc.Answer
	for i := range 100 {
		name := fmt.Sprint(i, long(150))
		in.Modules = append(in.Modules, formsvc.Module{Name: name, Label: long(1000), Multiple: true})
		answers = append(answers, formsvc.Answer{Name: name, Value: []string{long(100), long(100)}})
	}
	var c formsvc.Campaign
	var err error
	for range 30 {
		c, err = w.svc.Campaigns.Create(t.Context(), w.account.ID, in)
		w.must(err)
		_, err = w.svc.Keys.Create(t.Context(), w.account.ID, formsvc.KeyInput{Name: long(100), Permissions: formsvc.AllPermissions()})
		w.must(err)
	}
	var r formsvc.Response
	for range 30 {
		r = w.response(&c, long(200), answers...)
	}
	w.drain()
	for i := range formsvc.MaxWebhooks - 1 {
		w.hook(fmt.Sprint(hook.URL, i))
	}
	w.crowd(&r, 110, func(prefix string, i int) string {
		return map[string]string{
			"s-": fmt.Sprint(strings.Repeat("s", 60), i), "f-": long(255), "c-": long(10_000), "m-": long(200), "p-": long(200),
		}[prefix]
	})
	path, campaign := "/webhooks/"+string(hook.ID), "/campaigns/"+string(c.ID)
	one := campaign + "/responses/" + string(r.ID)
	for _, path := range []string{"/", "/keys", "/webhooks", path, path + "/edit", w.get(path).linkTo("/deliveries/"), "/failures", "/campaigns", campaign, campaign + "/summary", one} {
		if a := w.get(path).is(200); len(a.body) > 150_000 {
			t.Errorf("%s: %d bytes", path, len(a.body))
		}
	}
	w.get(one).says("older files aren't shown", "older signatures aren't shown", "older comments aren't shown", "The answers are cut here").
		lacks("No files", "No comments", "no value")
}
