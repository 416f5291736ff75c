package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
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
	for i := range hooks {
		hook := &hooks[i]
		if hook.Webhook.CampaignID == "" {
			continue
		}
		if !v.who.permits(formsvc.CampaignsRead) {
			hook.Of = "one campaign"
			continue
		}
		campaign, err := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: hook.Webhook.CampaignID})
		if hook.Of = campaign.Title; errors.Is(err, formsvc.ErrNotFound) {
			hook.Of = "a deleted form"
		} else if err != nil {
			return err
		}
	}
	return v.show(http.StatusOK, "webhooks", "Webhooks", webhooksPage{Hooks: hooks, Limit: formsvc.MaxWebhooks})
}

func (v *visit) webhookKey() formsvc.WebhookKey {
	return formsvc.WebhookKey{AccountID: v.account(), ID: v.id("webhook")}
}

// The number of intervals in the charts of the last day, and the limit of deliveries read in each, so that the page
// costs the same for any number.
const (
	chartParts  = 48
	chartSample = 50
)

type webhookPage struct {
	Webhook    formsvc.Webhook
	Campaign   *formsvc.Campaign // nil: all campaigns, or one that was deleted
	Waiting    int64
	Deliveries []formsvc.Delivery
	Pager      pager
	State      formsvc.DeliveryState // of the deliveries shown; "" for all
	Rate       string                // of successful deliveries
	Outcomes   chart
	Latency    chart
	Sampled    bool
	Header     string
	Live       string // what the page has seen of the deliveries
	Since      string // default start of redelivery
}

// webhook shows a webhook and its deliveries.
func (v *visit) webhook() error {
	key := v.webhookKey()
	hook, err := v.svc.Webhooks.Get(v.ctx(), key)
	if err != nil {
		return err
	}
	now := v.svc.Now()
	p := webhookPage{
		Webhook: hook, Header: webhook.SignatureHeader, Since: typedIn(now.Add(-24*time.Hour), v.zone),
	}
	if hook.CampaignID != "" && v.who.permits(formsvc.CampaignsRead) {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: hook.CampaignID})
		if err == nil {
			p.Campaign = &campaign
		} else if !errors.Is(err, formsvc.ErrNotFound) {
			return err
		}
	}
	switch state := formsvc.DeliveryState(v.query("state")); state {
	case formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed:
		p.State = state
	}
	live, err := v.seenDeliveries(key) // before what the page shows
	list, errList := v.svc.Deliveries.List(v.ctx(), formsvc.DeliveryQuery{
		AccountID: v.account(), WebhookID: hook.ID, State: p.State, Page: v.page(), NoTotal: true,
	})
	waiting, errWaiting := v.svc.Deliveries.Waiting(v.ctx(), key)
	samples, errSamples := v.svc.Deliveries.Sample(v.ctx(), formsvc.SampleQuery{
		Webhook: key, From: now.Add(-chartHours * time.Hour), To: now, Parts: chartParts, Each: chartSample,
	})
	if err = cmp.Or(err, errList, errWaiting, errSamples); err != nil {
		return err
	}
	p.Live, p.Waiting = live, waiting
	p.Deliveries, p.Pager = list.Items, pagerOf(v, list, func(d *formsvc.Delivery) formsvc.ID { return d.ID })
	p.draw(samples, v.clock)
	return v.show(http.StatusOK, "webhook", "Webhook", p)
}

// draw builds the charts of a webhook.
func (p *webhookPage) draw(samples []formsvc.DeliverySample, clock func(time.Time) string) {
	most, slowest, delivered, failed := 1, time.Millisecond, 0, 0
	for _, s := range samples {
		most, slowest = max(most, s.Delivered+s.Failed+s.Pending), max(slowest, s.P95)
		delivered, failed = delivered+s.Delivered, failed+s.Failed
		p.Sampled = p.Sampled || s.More
	}
	p.Rate = "no outcome yet"
	if sent := delivered + failed; sent > 0 {
		p.Rate = strconv.FormatFloat(100*float64(delivered)/float64(sent), 'f', 1, 64) + " % delivered"
	}
	p.Outcomes = newChart("Deliveries in the last 24 hours, per half hour: "+p.Rate, "24 hours", strconv.Itoa(most), float64(most))
	p.Latency = newChart("Response time in the last 24 hours, highest p95 "+millis(slowest), "24 hours", millis(slowest), float64(slowest))
	for _, s := range samples {
		at := clock(s.From)
		p.Outcomes.add(fmt.Sprintf("%s: %d delivered, %d failed, %d pending", at, s.Delivered, s.Failed, s.Pending),
			part{Class: "good", Height: float64(s.Delivered)}, part{Class: "bad", Height: float64(s.Failed)}, part{Class: "neutral", Height: float64(s.Pending)})
		p.Latency.add(fmt.Sprintf("%s: p50 %s, p95 %s", at, millis(s.Median), millis(s.P95)),
			part{Class: "neutral", Height: float64(s.Median)}, part{Class: "light", Height: float64(s.P95 - s.Median)})
	}
}

type secretPage struct {
	Webhook formsvc.Webhook
	Created bool
	Header  string
	Warning string
}

// showSecret shows a secret once.
func (v *visit) showSecret(title string, hook formsvc.Webhook, created bool) error {
	return v.show(http.StatusOK, "secret", title, secretPage{
		Webhook: hook, Created: created, Header: webhook.SignatureHeader, Warning: formsvc.SecretWarning(hook.Secret),
	})
}

// testWebhook sends a test event and shows its delivery.
func (v *visit) testWebhook() error {
	d, _, err := once(v, func(svc *formsvc.Service) (formsvc.Delivery, error) {
		return svc.Webhooks.Test(v.ctx(), v.webhookKey())
	})
	return v.backOr(err, "mail-test", "/deliveries/"+string(d.ID), "test")
}

// switchWebhook disables a webhook, or enables it again.
func (v *visit) switchWebhook() error {
	disable := v.field("disabled") == "true"
	note := map[bool]string{true: "disabled", false: "enabled"}[disable]
	hook, err := v.svc.Webhooks.SetDisabled(v.ctx(), v.webhookKey(), disable)
	return v.done(err, "/webhooks/"+string(hook.ID), note)
}

// rotateWebhook generates a new secret and shows it once.
func (v *visit) rotateWebhook() error {
	seconds, err := strconv.ParseInt(v.field("grace"), 10, 32)
	if err != nil || seconds < 0 {
		return &refusal{http.StatusBadRequest, "The form can't be read", "Choose one of the listed periods for the old secret."}
	}
	hook, repeated, err := once(v, func(svc *formsvc.Service) (formsvc.Webhook, error) {
		return svc.Webhooks.Rotate(v.ctx(), v.webhookKey(), formsvc.Rotation{Grace: time.Duration(seconds) * time.Second})
	})
	if err != nil || repeated {
		return cmp.Or(err, error(errShown))
	}
	return v.showSecret("New secret", hook, false)
}

// deleteWebhook deletes a webhook.
func (v *visit) deleteWebhook() error {
	return v.backOr(v.svc.Webhooks.Delete(v.ctx(), v.webhookKey()), "mail-removed", "/webhooks", "deleted")
}

// redeliverFailed sends again all deliveries that failed since a time.
func (v *visit) redeliverFailed() error {
	since, ok := dayIn(v.field("since"), v.zone)
	if !ok {
		return &refusal{http.StatusUnprocessableEntity, "Enter a start time", badDay(v.zone)}
	}
	n, _, err := once(v, func(svc *formsvc.Service) (int, error) {
		return svc.Deliveries.RedeliverFailed(v.ctx(), v.webhookKey(), since)
	})
	note := map[bool]string{true: "redelivered-none", false: "redelivered-all"}[n == 0]
	return v.redirect(err, "/webhooks/"+string(v.id("webhook")), url.Values{"note": {note}, "n": {strconv.Itoa(n)}})
}

// A hookForm is the form of a new or existing webhook, as it was typed. The page leaves out the secret: a page may be
// stored in more places than a request.
type hookForm struct {
	formsvc.WebhookInput

	ID        formsvc.ID // "" for a new webhook
	Choices   []choice   // of events
	Campaigns []formsvc.Campaign
	ByMail    bool
	Problem   string           // an error of the whole form
	Stored    *formsvc.Webhook // what somebody else saved meanwhile
}

// kept stands for the value of a header, which is never shown again.
const kept = "(kept)"

// newWebhook shows an empty form.
func (v *visit) newWebhook() error {
	var form hookForm
	form.Events = []formsvc.EventType{webhook.ResponseCreated}
	return v.showForm(http.StatusOK, form)
}

// editWebhook shows a webhook for editing.
func (v *visit) editWebhook() error {
	hook, err := v.svc.Webhooks.Get(v.ctx(), v.webhookKey())
	if err != nil {
		return err
	}
	form := hookForm{ID: hook.ID, WebhookInput: formsvc.WebhookInput{
		URL: hook.URL, Events: hook.Events, CampaignID: hook.CampaignID, Disabled: hook.Disabled, IfVersion: hook.Version, Mail: hook.Mail.MailInput,
	}}
	for _, header := range hook.Headers {
		form.Headers = append(form.Headers, formsvc.HeaderInput{Name: header.Name, Keep: true})
	}
	return v.showForm(http.StatusOK, form)
}

func (v *visit) showForm(status int, form hookForm) error {
	form.ByMail = strings.HasPrefix(strings.ToLower(form.URL), "mailto:")
	form.Choices = choices(v.h, webhook.KnownEventTypes(), form.Events)
	// A select is unusable with more campaigns; the API reaches the others.
	campaigns, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: formsvc.PageQuery{Limit: 100}})
	if err != nil {
		return err
	}
	form.Campaigns = campaigns.Items
	if form.CampaignID != "" && !slices.ContainsFunc(form.Campaigns, func(c formsvc.Campaign) bool { return c.ID == form.CampaignID }) {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: form.CampaignID})
		if errors.Is(err, formsvc.ErrNotFound) {
			campaign.ID, campaign.Title = form.CampaignID, "A deleted form"
		} else if err != nil {
			return err
		}
		form.Campaigns = append(form.Campaigns, campaign)
	}
	title := map[bool]string{true: "Add webhook", false: "Edit webhook"}[form.ID == ""]
	return v.show(status, "webhook-form", title, form)
}

// readWebhook reads the form. An empty field "secret" keeps the secret, or has one generated.
func (v *visit) readWebhook() hookForm {
	form := hookForm{ID: v.id("webhook"), WebhookInput: formsvc.WebhookInput{
		URL: v.field("url"), CampaignID: readID(v.field("campaign")), Secret: v.r.PostForm.Get("secret"), Disabled: v.field("disabled") != "",
		Mail: formsvc.MailInput{Daily: v.field("daily") != "", ReplyTo: v.field("reply") != ""},
	}}
	form.IfVersion, _ = strconv.ParseInt(v.field("version"), 10, 64)
	for _, name := range v.r.PostForm["events"] {
		form.Events = append(form.Events, formsvc.EventType(name))
	}
	for _, line := range lines(v.r.PostForm.Get("headers")) {
		name, value, _ := strings.Cut(line, ":")
		header := formsvc.HeaderInput{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		if header.Value == kept {
			header.Value, header.Keep = "", true
		}
		form.Headers = append(form.Headers, header)
	}
	return form
}

// refused shows the form again with its errors. It returns err if that isn't an error of the form.
func (v *visit) refused(err error, form hookForm) error {
	status := http.StatusConflict
	switch {
	case v.invalid(err):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, formsvc.ErrConflict):
		form.Problem = "A webhook with this URL, these events and this campaign already exists, with another secret or other headers."
	case errors.Is(err, formsvc.ErrLimit):
		form.Problem = "This account has the maximum of " + strconv.Itoa(formsvc.MaxWebhooks) + " webhooks. Delete one first."
	case errors.Is(err, formsvc.ErrStale):
		form.Problem = "Someone else changed this webhook. Nothing was saved. What you entered is below; saving it again overwrites what is stored now:"
		hook, err := v.svc.Webhooks.Get(v.ctx(), v.webhookKey())
		if err != nil {
			return err
		}
		form.IfVersion, form.Stored = hook.Version, &hook
	default:
		return err
	}
	return v.showForm(status, form)
}

// createWebhook creates a webhook and shows its secret once.
func (v *visit) createWebhook() error {
	form := v.readWebhook()
	var created bool
	hook, repeated, err := once(v, func(svc *formsvc.Service) (hook formsvc.Webhook, err error) {
		hook, created, err = svc.Webhooks.Create(v.ctx(), v.account(), form.WebhookInput)
		return hook, err
	})
	if err != nil {
		return v.refused(err, form)
	}
	if !created { // there is such a webhook: its secret was shown already
		return v.redirect(nil, "/webhooks/"+string(hook.ID), nil)
	}
	if hook.Address() != "" { // mail isn't signed
		return v.done(nil, "/webhooks/"+string(hook.ID), "mail-asked")
	}
	if repeated {
		return errShown
	}
	return v.showSecret("Webhook added", hook, true)
}

// updateWebhook changes a webhook.
func (v *visit) updateWebhook() error {
	form := v.readWebhook()
	hook, err := v.svc.Webhooks.Replace(v.ctx(), v.webhookKey(), form.WebhookInput)
	if err != nil {
		return v.refused(err, form)
	}
	note := map[bool]string{true: "saved", false: "saved-weak"}[formsvc.SecretWarning(form.Secret) == ""]
	return v.done(nil, "/webhooks/"+string(hook.ID), note)
}
