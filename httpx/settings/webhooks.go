package settings

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

type webhooksPage struct {
	Hooks []hookState
	Limit int
}

// webhooks lists the webhooks of the account.
func (v *visit) webhooks() error {
	hooks, err := v.hookStates()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "webhooks", "Webhooks", webhooksPage{Hooks: hooks, Limit: formsvc.MaxWebhooks})
}

func (v *visit) webhookKey() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: v.account(), ID: v.id("webhook")}
}

// Into how many parts the last day is cut for charts, and how many deliveries of each
// are looked at, so that the page costs the same for any number.
const (
	chartParts  = 48
	chartSample = 50
)

type webhookPage struct {
	Webhook    formsvc.Webhook
	Campaign   *formsvc.Campaign // nil: all campaigns
	Host       string
	Waiting    int64
	Deliveries []formsvc.Delivery
	Pager      pager
	State      formsvc.DeliveryState // that are shown; "" for all
	Rate       string                // of success
	Outcomes   chart
	Latency    chart
	Sampled    bool
	Header     string
	Since      string // what redelivering begins with unless something else is chosen
	Grace      []expiry
}

// graces are for how long an old secret may go on signing.
var graces = []expiry{ //nolint:gochecknoglobals // immutable
	{"86400", "for 24 hours more"}, {"3600", "for an hour more"}, {"604800", "for 7 days more"}, {"0", "no longer: it leaked"},
}

// webhook shows a webhook and what was sent to it.
func (v *visit) webhook() error {
	key := v.webhookKey()
	hook, err := v.svc.Webhooks.Get(v.ctx(), key)
	if err != nil {
		return err
	}
	now := v.h.now()
	p := webhookPage{
		Webhook: hook, Host: host(hook.URL), Header: webhook.SignatureHeader, Grace: graces,
		Since: now.Add(-24 * time.Hour).UTC().Format("2006-01-02T15:04"),
	}
	if hook.CampaignID != "" {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: hook.CampaignID})
		if err != nil {
			return err
		}
		p.Campaign = &campaign
	}
	if state := formsvc.DeliveryState(v.query("state")); slices.Contains(
		[]formsvc.DeliveryState{formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed}, state) {
		p.State = state
	}
	list, err := v.svc.Deliveries.List(v.ctx(), formsvc.DeliveryQuery{
		AccountID: v.account(), WebhookID: hook.ID, State: p.State, Page: v.page(), NoTotal: true,
	})
	if err != nil {
		return err
	}
	p.Deliveries = list.Items
	if n := len(list.Items); n > 0 {
		p.Pager = v.pager(list.More, list.Items[n-1].ID)
	}
	if p.Waiting, err = v.svc.Deliveries.Waiting(v.ctx(), key); err != nil {
		return err
	}
	samples, err := v.svc.Deliveries.Sample(v.ctx(), key, now.Add(-chartHours*time.Hour), now, chartParts, chartSample)
	if err != nil {
		return err
	}
	p.draw(samples)
	return v.show(http.StatusOK, "webhook", "Webhook", p)
}

// draw makes the charts of a webhook.
func (p *webhookPage) draw(samples []formsvc.DeliverySample) {
	var outcomes, latency [][]value
	var outcomeTexts, latencyTexts []string
	most, slowest, delivered, failed := 1, time.Millisecond, 0, 0
	for _, s := range samples {
		most, slowest = max(most, s.Delivered+s.Failed+s.Pending), max(slowest, s.P95)
		delivered, failed = delivered+s.Delivered, failed+s.Failed
		p.Sampled = p.Sampled || s.More
	}
	for _, s := range samples {
		at := s.From.UTC().Format("15:04 UTC")
		outcomes = append(outcomes, []value{{"good", float64(s.Delivered)}, {"bad", float64(s.Failed)}, {"neutral", float64(s.Pending)}})
		outcomeTexts = append(outcomeTexts, fmt.Sprintf("%s: %d delivered, %d failed, %d waiting", at, s.Delivered, s.Failed, s.Pending))
		latency = append(latency, []value{{"neutral", float64(s.Median)}, {"light", float64(s.P95 - s.Median)}})
		latencyTexts = append(latencyTexts, fmt.Sprintf("%s: half within %s, 95 %% within %s", at, millis(s.Median), millis(s.P95)))
	}
	p.Rate = "nothing was sent"
	if sent := delivered + failed; sent > 0 {
		p.Rate = strconv.FormatFloat(100*float64(delivered)/float64(sent), 'f', 1, 64) + " % delivered"
	}
	p.Outcomes = newChart("Deliveries of the last 24 hours, by half hours: "+p.Rate, float64(most), outcomes, outcomeTexts)
	p.Outcomes.Top = strconv.Itoa(most)
	p.Latency = newChart("How long answers took in the last 24 hours, 95 % within "+millis(slowest)+" at worst", float64(slowest), latency, latencyTexts)
	p.Latency.Top = millis(slowest)
}

type secretPage struct {
	Webhook formsvc.Webhook
	Created bool
	Header  string
	Warning string
}

// showSecret shows a secret, this once.
func (v *visit) showSecret(title string, hook formsvc.Webhook, created bool) error {
	return v.show(http.StatusOK, "secret", title, secretPage{
		Webhook: hook, Created: created, Header: webhook.SignatureHeader, Warning: formsvc.SecretWarning(hook.Secret),
	})
}

// testWebhook sends a test event and shows its delivery.
func (v *visit) testWebhook() error {
	d, err := v.once().Webhooks.Test(v.ctx(), v.webhookKey())
	if err != nil {
		return err
	}
	return v.redirect("/deliveries/"+string(d.ID), url.Values{"note": {"test"}})
}

// switchWebhook disables a webhook, or enables it again.
func (v *visit) switchWebhook() error {
	disable, note := v.field("disabled") == "true", "enabled"
	if disable {
		note = "disabled"
	}
	hook, err := v.svc.Webhooks.SetDisabled(v.ctx(), v.webhookKey(), disable)
	if err != nil {
		return err
	}
	return v.redirect("/webhooks/"+string(hook.ID), url.Values{"note": {note}})
}

// rotateWebhook makes a new secret and shows it, this once.
func (v *visit) rotateWebhook() error {
	seconds, err := strconv.ParseUint(v.field("grace"), 10, 32)
	if err != nil {
		return &refusal{http.StatusBadRequest, "The form can't be read", "How long the old secret signs is none of the choices."}
	}
	hook, err := v.once().Webhooks.Rotate(v.ctx(), v.webhookKey(), formsvc.Rotation{Grace: time.Duration(seconds) * time.Second})
	if v.invalid(err, firstSegment) {
		return &refusal{http.StatusUnprocessableEntity, "The secret was not changed", "How long the old secret signs " + v.wrong["gracePeriodSeconds"] + "."}
	}
	if err != nil {
		return err
	}
	return v.showSecret("The new secret", hook, false)
}

// deleteWebhook removes a webhook.
func (v *visit) deleteWebhook() error {
	if err := v.svc.Webhooks.Delete(v.ctx(), v.webhookKey()); err != nil {
		return err
	}
	return v.redirect("/webhooks", url.Values{"note": {"deleted"}})
}

// redeliverFailed sends everything again that failed since a time.
func (v *visit) redeliverFailed() error {
	since, err := time.Parse("2006-01-02T15:04", v.field("since"))
	if err != nil {
		since, err = time.Parse("2006-01-02T15:04:05", v.field("since"))
	}
	if err != nil {
		return &refusal{http.StatusUnprocessableEntity, "Since when?", "Give a date and a time, in UTC, such as 2026-11-21T08:30."}
	}
	n, err := v.once().Deliveries.RedeliverFailed(v.ctx(), v.webhookKey(), since)
	if err != nil {
		return err
	}
	return v.redirect("/webhooks/"+string(v.id("webhook")), url.Values{"note": {"redelivered-all"}, "n": {strconv.Itoa(n)}})
}
