package settings_test

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/settings"
)

// Texts count by their length after escaping by html/template.
func TestEscapedBytes(t *testing.T) {
	page := template.Must(template.New("").Parse("{{.}}"))
	for r := range rune(0x2100) {
		var b strings.Builder
		if err := page.Execute(&b, string(r)); err != nil {
			t.Fatal(err)
		}
		if got := settings.Escaped(string(r)); got != b.Len() {
			t.Errorf("%U is counted as %d bytes and has %d", r, got, b.Len())
		}
	}
	for _, text := range append(hostiles(), "") {
		var b strings.Builder
		if err := page.Execute(&b, text); err != nil {
			t.Fatal(err)
		}
		if got := settings.Escaped(text); got != b.Len() {
			t.Errorf("%q is counted as %d bytes and has %d", text, got, b.Len())
		}
	}
}

// maxPage is the limit of a page's HTML in bytes.
const maxPage = 150_000

// A giant is an account with more of every kind of record than a page shows, with the longest possible texts.
type giant struct {
	*world
	character string // repeated in the texts; it is longer in HTML
}

func (g *giant) long(n int) string { return strings.Repeat(g.character, n) }

func (g *giant) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// fill creates the records and returns the pages.
func (g *giant) fill() []string {
	g.t.Helper()
	ctx := g.t.Context()
	for range 60 {
		_, _, err := g.svc.Keys.Create(ctx, g.account.ID, formsvc.KeyInput{Name: g.long(100), Permissions: formsvc.AllPermissions(), Expires: time.Hour})
		g.must(err)
		_, err = g.svc.Campaigns.Create(ctx, g.account.ID, formsvc.CampaignInput{Title: g.long(499), Description: g.long(10_000)})
		g.must(err)
	}
	receiver := g.receiver(500, g.long(5000)) + "/?" + strings.Repeat("&", 2000)
	hook := g.hook(receiver)
	in := formsvc.WebhookInput{URL: hook.URL, Events: hook.Events}
	for i := range formsvc.MaxHeaders {
		in.Headers = append(in.Headers, formsvc.HeaderInput{Name: fmt.Sprint(i, strings.Repeat("&", 99)), Value: "x"})
	}
	_, err := g.svc.Webhooks.Replace(ctx, formsvc.WebhookKey{AccountID: g.account.ID, ID: hook.ID}, in, 0)
	g.must(err)
	r := g.responses(func() {
		for i := range formsvc.MaxWebhooks - 1 {
			g.hook(fmt.Sprint(receiver, i))
		}
	})
	g.drain()
	g.records(&r)
	path := "/webhooks/" + string(hook.ID)
	delivery := g.get(path).linkTo("/deliveries/")
	for range 12 {
		g.submit(g.get(delivery), delivery+"/redeliver", nil).is(303)
		g.drain()
	}
	campaign := "/campaigns/" + string(r.CampaignID)
	return []string{
		"/", "/keys", "/webhooks", "/webhooks/new", path, path + "/edit", delivery, "/failures", "/campaigns", campaign,
		campaign + "?reference=" + r.Reference + "&email=" + url.QueryEscape(r.User.Email), campaign + "/responses/" + string(r.ID),
	}
}

// responses creates more responses than a page shows, and calls before ahead of the last few. It returns the last one.
func (g *giant) responses(before func()) (last formsvc.Response) {
	g.t.Helper()
	campaign := formsvc.CampaignInput{Title: g.long(500), Description: g.long(10_000)}
	var answers []formsvc.Answer
	for i := range 100 {
		name := fmt.Sprint(i, g.long(150))
		campaign.Modules = append(campaign.Modules, formsvc.Module{Name: name, Label: g.long(1000), Multiple: true})
		answers = append(answers, formsvc.Answer{Name: name, Value: []string{g.long(100), g.long(100)}})
	}
	c, err := g.svc.Campaigns.Create(g.t.Context(), g.account.ID, campaign)
	g.must(err)
	for i := range 30 {
		if i == 26 {
			before()
		}
		last, err = g.svc.Responses.Create(g.t.Context(), c.Key(), formsvc.ResponseInput{
			User: formsvc.User{Email: strings.Repeat("&", 60) + "@example.com", FirstName: g.long(200), LastName: g.long(200)}, Answers: answers,
		})
		g.must(err)
	}
	return last
}

// records adds every kind of record to a response.
func (g *giant) records(r *formsvc.Response) {
	g.t.Helper()
	ctx := g.t.Context()
	key := formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
	for i := range 110 {
		status := fmt.Sprint(strings.Repeat("s", 60), i)
		_, err := g.svc.Responses.Update(ctx, key, formsvc.ResponsePatch{Status: &status})
		g.must(err)
		_, err = g.svc.Comments.Create(ctx, key, formsvc.CommentInput{Body: g.long(10_000), Author: g.long(200)})
		g.must(err)
		_, err = g.svc.Signatures.Create(ctx, key, formsvc.SignatureInput{Signer: r.User, Provider: g.long(200)})
		g.must(err)
		_, err = g.svc.Files.Upload(ctx, key, formsvc.FileInput{Name: g.long(255), Module: g.long(200), Content: strings.NewReader("x")})
		g.must(err)
	}
}

// An answer that doesn't fit isn't shown as one without a value.
func TestAnswersBeyondTheLimitAreCut(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign("Long")
		var answers []formsvc.Answer
		for i := range 100 {
			answers = append(answers, formsvc.Answer{Name: fmt.Sprint("m-", i), Value: []string{strings.Repeat("&", 300)}})
		}
		r := w.response(&campaign, "Ada", answers...)
		w.get("/campaigns/"+string(campaign.ID)+"/responses/"+string(r.ID)).is(200).says("m-0", "The answers are cut here").lacks("no value", "m-99")
	})
}

// If not everything fits, the page shows the newest records and the number of the others.
func TestNewestIsShown(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		hook := w.hook(w.receiver(500, "no"))
		campaign := w.campaign("Busy")
		r := w.response(&campaign, "Ada")
		w.drain()
		key := formsvc.ResponseKey{AccountID: w.account.ID, CampaignID: campaign.ID, ID: r.ID}
		one := "/campaigns/" + string(campaign.ID) + "/responses/" + string(r.ID)
		w.get(one).lacks("older ", "Later ")
		for i := range 101 {
			_, err := w.svc.Files.Upload(t.Context(), key, formsvc.FileInput{Name: fmt.Sprint("f-", i, "."), Content: strings.NewReader("x")})
			if err != nil {
				t.Fatal(err)
			}
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
	})
}

// If the history is too long or its events are too large, the page says that later events may be missing.
func TestLongHistory(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign("Long")
		many, large := w.response(&campaign, "Ada"), w.response(&campaign, "Grace", formsvc.Answer{Name: "a", Value: []string{strings.Repeat("x", 900_000)}})
		for i := range 1000 {
			status := fmt.Sprint("s-", i)
			for _, r := range []*formsvc.Response{&many, &large} {
				key := formsvc.ResponseKey{AccountID: w.account.ID, CampaignID: campaign.ID, ID: r.ID}
				if r == &large && i > 5 {
					continue
				}
				if _, err := w.svc.Responses.Update(t.Context(), key, formsvc.ResponsePatch{Status: &status}); err != nil {
					t.Fatal(err)
				}
			}
		}
		path := "/campaigns/" + string(campaign.ID) + "/responses/"
		w.get(path+string(many.ID)).is(200).says("900 older events", "Later events may be missing", "status s-998")
		w.get(path+string(large.ID)).is(200).says("Later events may be missing", "status s-2")
	})
}

// A reply that was cut within a character is still shown as text.
func TestReplyCutWithinACharacterIsText(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, text := range []string{"x" + strings.Repeat("é", 3000), strings.Repeat("\U0001F6B2", 2000) + "x", "xx" + strings.Repeat("\U0001F6B2", 2000)} {
			hook := w.hook(w.receiver(200, text))
			campaign := w.campaign("Long")
			w.response(&campaign, "Ada")
			w.drain()
			w.get(w.get("/webhooks/"+string(hook.ID)).linkTo("/deliveries/")).says(string([]rune(text)[:10])).lacks("isn't text", "\uFFFD")
		}
	})
}
