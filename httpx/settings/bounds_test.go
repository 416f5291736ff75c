//go:build long

package settings_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// No page exceeds 150 KB, whatever is stored.
func TestPagesAreBounded(t *testing.T) {
	for _, character := range []string{"<", "&", `"`} {
		t.Run(character, func(t *testing.T) {
			w := newSignedIn(t)
			for _, path := range (&giant{w, character}).fill() {
				a := w.get(path).is(200)
				if len(a.body) > maxPage {
					t.Errorf("%s: %d bytes", path, len(a.body))
				}
				// Every part gets its reserved space, whatever comes before it.
				switch {
				case strings.HasPrefix(path, "/deliveries/"):
					a.says("4 older attempts aren't shown", "The reply is cut here", `{"id":"`, "First part of")
					if n := strings.Count(a.body, `aria-label="Beginning of the reply"`); n != 10 {
						t.Errorf("%d answers of 10 attempts", n)
					}
				case strings.Contains(path, "/responses/"):
					a.says("older files aren't shown", "older signatures aren't shown", "older comments aren't shown", "The answers are cut here").
						lacks("No files", "No comments", "no value")
				}
			}
		})
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
	g.crowd(&r, 110, func(prefix string, i int) string {
		if prefix == "s-" {
			return fmt.Sprint(strings.Repeat("s", 60), i)
		}
		return g.long(map[string]int{"f-": 255, "c-": 10_000, "m-": 200, "p-": 200}[prefix])
	})
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
