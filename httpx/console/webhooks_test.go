package console_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func (w *world) hooks() []formsvc.Webhook {
	w.t.Helper()
	hooks, err := w.svc.Webhooks.List(w.t.Context(), w.account.ID)
	w.must(err)
	return hooks
}

// A webhook from its creation to its deletion.
func TestWebhook(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Bicycle survey")
	w.get("/webhooks").is(200).says("No webhooks yet")
	page := w.get("/webhooks/new").is(200)
	fields := url.Values{
		"url": {"https://example.com/hooks?token=x"}, "events": {"response.created", "file.uploaded"}, "campaign": {string(campaign.ID)},
		"headers": {"X-Token: qqq\r\n\r\nx-other:d:e\r\n"},
	}
	made := w.submit(page, "/webhooks", fields).is(200).says("won't be shown again", "x-service-signature", "Go", "Node", "Python")
	secret := made.secret()
	w.submit(page, "/webhooks", fields).is(409).lacks(secret)
	hook := w.hooks()[0]
	want := []formsvc.Header{{Name: "X-Other", Value: "d:e"}, {Name: "X-Token", Value: "qqq"}}
	if hook.Secret != secret || hook.URL != fields.Get("url") || hook.CampaignID != campaign.ID || !slices.Equal(hook.Headers, want) ||
		!slices.Equal(hook.Events, []webhook.EventType{"response.created", "file.uploaded"}) {
		t.Errorf("made %+v", hook)
	}
	path := "/webhooks/" + string(hook.ID)
	w.get("/webhooks/" + strings.ToUpper(string(hook.ID))).is(200).says("Bicycle survey")
	w.get("/webhooks").is(200).says(hook.URL, "1 of 50", "enabled").lacks(secret)
	w.get(path).is(200).says("Bicycle survey", "X-Token", "No deliveries yet").lacks(secret, "qqq", "d:e")

	edit := w.get(path+"/edit").is(200).lacks(secret, "qqq", "d:e")
	w.submit(edit, path, url.Values{"url": {"https://example.com/other"}, "campaign": {""}, "disabled": {"true"}}).is(303).leadsTo(path).says("Webhook saved", "disabled")
	now := w.hooks()[0]
	if now.URL != "https://example.com/other" || now.CampaignID != "" || !now.Disabled || now.Secret != secret || !slices.Equal(now.Headers, want) {
		t.Errorf("now %+v", now)
	}
	w.submit(edit, path, url.Values{"url": {"https://example.com/late"}}).is(409).says("Someone else changed").lacks(secret)
	w.submit(w.get(path), path+"/state", nil).is(303).leadsTo(path).says("Webhook enabled")

	page = w.get(path)
	w.submit(page, path+"/test", nil).is(303) // both forms of the page take effect
	rotated := w.submit(page, path+"/rotate", url.Values{"grace": {"3600"}}).is(200).says("old secret still signs").lacks(secret)
	if now = w.hooks()[0]; rotated.secret() != now.Secret || now.Secret == secret || now.Previous != secret || now.PreviousUntil.Sub(w.clock()) > time.Hour {
		t.Errorf("rotated %+v", now)
	}
	w.submit(page, path+"/rotate", url.Values{"grace": {"3600"}}).is(409).lacks(now.Secret)
	w.get(path).says("The previous secret still signs").lacks(now.Secret, secret)
	w.submit(w.get(path), path+"/rotate", url.Values{"grace": {"0"}}).is(200).says("no longer signs anything")
	w.submit(w.get(path), path+"/rotate", url.Values{"grace": {"99999999"}}).is(422)
	w.submit(w.get(path), path+"/rotate", url.Values{"grace": {"x"}}).is(400)

	w.submit(w.get(path), path+"/delete", nil).is(303).leadsTo("/webhooks").says("Webhook deleted", "No webhooks yet")
	w.get(path).is(404)
}

func TestWebhookForm(t *testing.T) {
	w := newSignedIn(t)
	page := w.get("/webhooks/new")
	for field, row := range map[string]struct {
		values []string
		says   string
	}{
		"url": {[]string{"ftp://example.com"}, "must be an absolute http or https URL"}, "events": {nil, "must name at least one event"},
		"secret": {[]string{strings.Repeat("é", 129)}, "between 1 and 256 bytes"}, "campaign": {[]string{"018f0000-0000-7000-8000-000000000000"}, "campaign of this account"},
		"headers": {[]string{"Host: x"}, "Host"},
	} {
		fields := url.Values{"url": {"https://example.com/typed"}}
		fields[field] = row.values
		a := w.submit(page, "/webhooks", fields).is(422).says(row.says)
		if !strings.Contains(a.body, `id="wrong-`+field+`"`) {
			t.Errorf("%s: not said beside the field: %s", field, a.text())
		}
		if field != "url" && a.form("/webhooks").Get("url") != "https://example.com/typed" {
			t.Errorf("%s: what was typed is gone", field)
		}
	}
	w.submit(page, "/webhooks", url.Values{"url": {"https://example.com/"}, "secret": {"fifteen letters"}}).is(200).says("The secret is weak")
	path := "/webhooks/" + string(w.hooks()[0].ID)
	w.submit(w.get(path+"/edit"), path, url.Values{"secret": {"sixteen letters!"}}).is(303).leadsTo(path).says("Webhook saved").lacks("weak")
	page = w.get("/webhooks/new")
	w.submit(page, "/webhooks", url.Values{"url": {"https://example.com/"}, "secret": {"another one of my own"}}).is(409).says("already exists").lacks("another one")
	w.submit(page, "/webhooks", url.Values{"url": {"https://example.com/"}}).is(303).leadsTo(path)
	for i := range formsvc.MaxWebhooks - 1 {
		w.hook("https://example.com/" + strings.Repeat("x", i+1))
	}
	w.submit(page, "/webhooks", url.Values{"url": {"https://example.com/51"}}).is(409).says("something else in it")
	w.submit(w.get("/webhooks/new"), "/webhooks", url.Values{"url": {"https://example.com/51"}}).is(409).says("50 webhooks")
	w.get("/webhooks").is(200).says("50 of 50")
}

// A webhook of a deleted campaign is shown as such, keeps its campaign when it is edited, and can be deleted.
func TestWebhookOfDeletedCampaign(t *testing.T) {
	w := newSignedIn(t)
	gone, last := w.campaign("Gone"), w.campaign("Old")
	for range 101 { // more than the select lists
		w.campaign("x")
	}
	for _, c := range []formsvc.Campaign{gone, last} {
		hook, _, err := w.svc.Webhooks.Create(t.Context(), w.account.ID, formsvc.WebhookInput{
			URL: "https://example.com/" + c.Title, Events: []formsvc.EventType{"response.created"}, CampaignID: c.ID,
		})
		w.must(err)
		path, says := "/webhooks/"+string(hook.ID), "Old"
		if c.ID == gone.ID {
			w.must(w.svc.Campaigns.Delete(t.Context(), gone.Key(), nil))
			says = "a deleted form"
		}
		w.get("/webhooks").is(200).says("Of " + says)
		w.get(path).is(200).says("Events of " + says)
		edit := w.get(path + "/edit").is(200)
		equal(t, edit.form(path).Get("campaign"), string(c.ID), "%s: the form preselects %q", c.Title)
		wrong := w.submit(edit, path, url.Values{"url": {"nonsense"}}).is(422)
		w.submit(wrong, path, url.Values{"url": {"https://example.com/2" + c.Title}, "disabled": {"true"}}).is(303).leadsTo(path).says("disabled")
		w.submit(w.get(path), path+"/state", nil).is(303)
		w.submit(edit, path, url.Values{"url": {"https://example.com/3"}}).is(409).says("Nothing was saved", "https://example.com/2"+c.Title)
		now, err := w.svc.Webhooks.Get(t.Context(), formsvc.WebhookKey{AccountID: w.account.ID, ID: hook.ID})
		if err != nil || now.CampaignID != c.ID || now.URL != "https://example.com/2"+c.Title || now.Disabled {
			t.Errorf("now %+v, %v", now, err)
		}
		w.submit(w.get(path), path+"/test", nil).is(303)
		w.submit(w.get(path), path+"/delete", nil).is(303)
	}
	hook := w.hook("https://example.com/all")
	path := "/webhooks/" + string(hook.ID)
	w.submit(w.get(path+"/edit"), path, url.Values{"campaign": {string(gone.ID)}}).is(422).says("must be a campaign of this account")
	w.get("/").is(200)
}

// The pages show what was sent and the replies, and send it again.
func TestDeliveries(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Bicycle survey")
	good, bad := w.hook(w.receiver(200, "thanks")), w.hook(w.receiver(503, "<b>busy</b>"))
	must(w.svc.Webhooks.Replace(t.Context(), formsvc.WebhookKey{AccountID: w.account.ID, ID: good.ID}, formsvc.WebhookInput{
		URL: good.URL, Events: good.Events, Headers: []formsvc.HeaderInput{{Name: "X-Token", Value: "for the receiver"}},
	}))
	r := w.response(&campaign, "Ada")
	path := "/webhooks/" + string(good.ID)
	w.get(path).is(200).says("pending", "1 pending")
	w.get("/").says("2 pending deliveries")
	w.get(w.get(path).linkTo("/deliveries/")).says("next attempt").lacks("sending since")
	now := w.clock()
	must(w.store.Claim(t.Context(), delivery.ClaimRequest{
		Now: now, Lease: time.Minute, Shares: []delivery.Share{{Endpoint: string(good.ID), N: 1}},
	}))
	w.get(w.get(path).linkTo("/deliveries/")).says("sending since", now.UTC().Format("15:04")).lacks("next attempt")
	w.wait(time.Minute)
	w.drain()
	page := w.get(path).is(200).says("response.created", "delivered", "Answered 200", "100.0 % delivered")
	one := page.linkTo("/deliveries/")
	signature := webhook.Sign(good.Secret, w.payload())
	w.get(one).is(200).says("Answered 200", "thanks", "x-service-signature", signature, "X-Token", "(not shown)", r.Reference, "ada@example.com").
		lacks("for the receiver", good.Secret)
	if body := w.get(one + "/body").is(200); body.body != string(w.payload()) || !strings.HasPrefix(body.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("body %s", body.body)
	}
	w.submit(w.get(one), one+"/redeliver", nil).is(303).leadsTo(one).says("Resending", "pending")
	w.drain()
	w.get(one).says("2. Answered 200")

	path = "/webhooks/" + string(bad.ID)
	w.get(path).says("failed", "Answered 503", "0.0 % delivered")
	two := w.get(path).linkTo("/deliveries/")
	w.get(two).says("<b>busy</b>").lacks("<b>busy")
	w.get("/failures").is(200).says(bad.URL, "Answered 503 The receiver has a problem").linkTo(two[:len(two)-1])
	selected := url.Values{"delivery": {strings.TrimPrefix(two, "/deliveries/"), string(bad.ID)}}
	w.submit(w.get("/failures"), "/failures", selected).is(303).leadsTo("/failures").says("Done: 1.", "are gone: 1.")
	w.get(two).says("pending")
	w.drain()
	w.get("/").says("1 of 2 webhooks had failures")
	w.get("/webhooks").says("1 failed in the last day", "failing")
	w.get(path + "?state=delivered").says("No delivered deliveries")
	w.get(path + "?state=x").says("Answered 503")
	form := w.get(path)
	w.submit(form, path+"/redeliver", url.Values{"since": {"yesterday"}}).is(422)
	again := w.submit(form, path+"/redeliver", url.Values{"since": {w.clock().Add(-time.Hour).UTC().Format("2006-01-02T15:04")}}).is(303)
	again.leadsTo(path).says("Resending 1 failed deliveries")

	tested := w.submit(w.get(path), path+"/test", nil).is(303)
	testPath, _, _ := strings.Cut(strings.TrimPrefix(tested.header.Get("Location"), "/admin/console"), "?")
	w.get(testPath).is(200).says("(test)", "pending")
}

// payload returns the bytes of the newest event.
func (w *world) payload() []byte {
	w.t.Helper()
	events, err := w.svc.Events.Recent(w.t.Context(), formsvc.RecentQuery{AccountID: w.account.ID, Limit: 1})
	if err != nil || len(events) != 1 {
		w.t.Fatalf("%d events, %v", len(events), err)
	}
	return events[0].Payload
}

// A body or a reply of any size and kind keeps its page within the limit.
func TestLargeDelivery(t *testing.T) {
	w := newSignedIn(t)
	campaign := w.campaign("Large")
	hook := w.hook(w.receiver(200, strings.Repeat("\xff", 10_000)))
	w.response(&campaign, "Ada", formsvc.Answer{Name: "a", Value: []string{strings.Repeat("é", 400_000)}})
	w.drain()
	one := w.get("/webhooks/" + string(hook.ID)).linkTo("/deliveries/")
	a := w.get(one).is(200).says("The reply isn't text: 4096 bytes", "Download the body")
	if len(a.body) > 80_000 {
		t.Errorf("%d bytes", len(a.body))
	}
	if n := len(w.get(one + "/body").is(200).body); n < 800_000 {
		t.Errorf("a body of %d bytes", n)
	}
}
