package settings

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A hookForm is the form for a webhook, new or not. The secret that was typed is not in
// it: what is in a page is in more places than what is sent.
type hookForm struct {
	ID         formsvc.ID // "" for a new one
	URL        string
	Events     []eventChoice
	CampaignID formsvc.ID
	Campaigns  []formsvc.Campaign // to choose from
	Headers    string             // a line each
	Disabled   bool
	Version    int64
	Problem    string // with the whole
}

type eventChoice struct {
	webhook.EventType
	About  string
	Chosen bool
}

// eventTexts say when each event occurs (specification).
var eventTexts = map[webhook.EventType]string{ //nolint:gochecknoglobals // immutable
	webhook.ResponseCreated: "A new response is submitted", webhook.ResponseUpdated: "A response is modified",
	webhook.ResponseStatusChanged: "The status of a response changes", webhook.ResponseCompleted: "A response is finalized",
	webhook.SignatureCompleted: "A document is signed", webhook.FileUploaded: "A file is uploaded",
}

// kept stands for the value of a header, which is not shown again.
const kept = "(kept)"

// newWebhook shows an empty form.
func (v *visit) newWebhook() error {
	return v.showForm(http.StatusOK, hookForm{}, []formsvc.EventType{webhook.ResponseCreated})
}

// editWebhook shows a webhook to be changed.
func (v *visit) editWebhook() error {
	hook, err := v.svc.Webhooks.Get(v.ctx(), v.webhookKey())
	if err != nil {
		return err
	}
	var headers strings.Builder
	for _, header := range hook.Headers {
		headers.WriteString(header.Name + ": " + kept + "\n")
	}
	return v.showForm(http.StatusOK, hookForm{
		ID: hook.ID, URL: hook.URL, CampaignID: hook.CampaignID, Headers: headers.String(), Disabled: hook.Disabled, Version: hook.Version,
	}, hook.Events)
}

func (v *visit) showForm(status int, form hookForm, chosen []formsvc.EventType) error {
	for _, t := range webhook.EventTypes() {
		form.Events = append(form.Events, eventChoice{t, eventTexts[t], slices.Contains(chosen, t)})
	}
	// More than a select can be used for are reached over the API.
	campaigns, err := v.svc.Campaigns.List(v.ctx(), formsvc.CampaignQuery{AccountID: v.account(), Page: formsvc.PageQuery{Limit: 100}})
	if err != nil {
		return err
	}
	form.Campaigns = campaigns.Items
	if form.CampaignID != "" && !slices.ContainsFunc(form.Campaigns, func(c formsvc.Campaign) bool { return c.ID == form.CampaignID }) {
		campaign, err := v.svc.Campaigns.Get(v.ctx(), formsvc.CampaignKey{AccountID: v.account(), ID: form.CampaignID})
		if err == nil {
			form.Campaigns = append(form.Campaigns, campaign)
		} else if !errors.Is(err, formsvc.ErrNotFound) {
			return err
		}
	}
	title := "Change the webhook"
	if form.ID == "" {
		title = "Add a webhook"
	}
	return v.show(status, "webhook-form", title, form)
}

// readWebhook reads the form. A field "secret" that is empty keeps the secret, or has
// one made.
func (v *visit) readWebhook() (form hookForm, in formsvc.WebhookInput) {
	form = hookForm{
		ID: v.id("webhook"), URL: v.field("url"), CampaignID: readID(v.field("campaign")),
		Headers: v.r.PostForm.Get("headers"), Disabled: v.field("disabled") != "",
	}
	form.Version, _ = strconv.ParseInt(v.field("version"), 10, 64)
	in = formsvc.WebhookInput{URL: form.URL, CampaignID: form.CampaignID, Secret: v.r.PostForm.Get("secret"), Disabled: form.Disabled}
	for _, name := range v.r.PostForm["events"] {
		in.Events = append(in.Events, formsvc.EventType(name))
	}
	for line := range strings.Lines(form.Headers) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		header := formsvc.HeaderInput{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		if header.Value == kept {
			header.Value, header.Keep = "", true
		}
		in.Headers = append(in.Headers, header)
	}
	return form, in
}

// placeInHook names the field of the form for a member of the input.
func placeInHook(pointer string) string {
	if name := firstSegment(pointer); name != "campaignUuid" {
		return name
	}
	return "campaign"
}

// refused shows the form again, with what is wrong, unless the error is none of the
// form's.
func (v *visit) refused(err error, form hookForm, in *formsvc.WebhookInput) error {
	status := http.StatusConflict
	switch {
	case v.invalid(err, placeInHook):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, formsvc.ErrConflict):
		form.Problem = "There is a webhook with this address, these events and this campaign already, with another secret or other headers."
	case errors.Is(err, formsvc.ErrLimit):
		form.Problem = "An account may have " + strconv.Itoa(formsvc.MaxWebhooks) + " webhooks, and this one has as many. Delete one first."
	case errors.Is(err, formsvc.ErrStale):
		form.Problem = "Somebody changed this webhook meanwhile. Compare before you save again: the next time this form wins."
		hook, err := v.svc.Webhooks.Get(v.ctx(), v.webhookKey())
		if err != nil {
			return err
		}
		form.Version = hook.Version
	default:
		return err
	}
	return v.showForm(status, form, in.Events)
}

// createWebhook makes a webhook and shows its secret, this once.
func (v *visit) createWebhook() error {
	form, in := v.readWebhook()
	hook, created, err := v.once().Webhooks.Create(v.ctx(), v.account(), in)
	if err != nil {
		return v.refused(err, form, &in)
	}
	if !created { // its secret is nobody's business any more
		return v.redirect("/webhooks/"+string(hook.ID), nil)
	}
	return v.showSecret("The webhook is added", hook, true)
}

// updateWebhook changes a webhook.
func (v *visit) updateWebhook() error {
	form, in := v.readWebhook()
	hook, err := v.svc.Webhooks.Replace(v.ctx(), v.webhookKey(), in, form.Version)
	if err != nil {
		return v.refused(err, form, &in)
	}
	note := "saved"
	if formsvc.SecretWarning(in.Secret) != "" {
		note = "saved-weak"
	}
	return v.redirect("/webhooks/"+string(hook.ID), url.Values{"note": {note}})
}
