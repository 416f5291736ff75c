package console

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

// A hookForm is the form of a new or existing webhook. It doesn't keep the secret that was typed: a page may be stored
// in more places than a request.
type hookForm struct {
	ID         formsvc.ID // "" for a new webhook
	URL        string
	Events     []eventChoice
	CampaignID formsvc.ID
	Campaigns  []formsvc.Campaign // the choices
	Headers    string             // one a line
	Disabled   bool
	Version    int64
	Problem    string // an error of the whole form
}

type eventChoice struct {
	webhook.EventType
	About  string
	Chosen bool
}

// eventTexts describes when each event occurs (specification).
var eventTexts = map[webhook.EventType]string{ //nolint:gochecknoglobals // immutable
	webhook.ResponseCreated: "A new response is submitted", webhook.ResponseUpdated: "A response is modified",
	webhook.ResponseStatusChanged: "The status of a response changes", webhook.ResponseCompleted: "A response is finalized",
	webhook.SignatureCompleted: "A document is signed", webhook.FileUploaded: "A file is uploaded",
	webhook.ResponseDeleted: "A response is deleted",
}

// kept stands for the value of a header, which is never shown again.
const kept = "(kept)"

// newWebhook shows an empty form.
func (v *visit) newWebhook() error {
	return v.showForm(http.StatusOK, hookForm{}, []formsvc.EventType{webhook.ResponseCreated})
}

// editWebhook shows a webhook for editing.
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
	for _, t := range webhook.KnownEventTypes() {
		form.Events = append(form.Events, eventChoice{t, eventTexts[t], slices.Contains(chosen, t)})
	}
	// A select is unusable with more campaigns; the API reaches the others.
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
	title := "Edit webhook"
	if form.ID == "" {
		title = "Add webhook"
	}
	return v.show(status, "webhook-form", title, form)
}

// readWebhook reads the form. An empty field "secret" keeps the secret, or has one generated.
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

// placeInHook maps a pointer in the input to a field of the form.
func placeInHook(pointer string) string {
	if name := firstSegment(pointer); name != "campaignUuid" {
		return name
	}
	return "campaign"
}

// refused shows the form again with its errors. It returns err if that isn't an error of the form.
func (v *visit) refused(err error, form hookForm, in *formsvc.WebhookInput) error {
	status := http.StatusConflict
	switch {
	case v.invalid(err, placeInHook):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, formsvc.ErrConflict):
		form.Problem = "A webhook with this URL, these events and this campaign already exists, with another secret or other headers."
	case errors.Is(err, formsvc.ErrLimit):
		form.Problem = "This account has the maximum of " + strconv.Itoa(formsvc.MaxWebhooks) + " webhooks. Delete one first."
	case errors.Is(err, formsvc.ErrStale):
		form.Problem = "Someone else changed this webhook. Compare before you save again: saving overwrites their changes."
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

// createWebhook creates a webhook and shows its secret once.
func (v *visit) createWebhook() error {
	form, in := v.readWebhook()
	hook, created, err := v.once().Webhooks.Create(v.ctx(), v.account(), in)
	if err != nil {
		return v.refused(err, form, &in)
	}
	if !created { // there is such a webhook: its secret was shown already
		return v.redirect("/webhooks/"+string(hook.ID), nil)
	}
	if v.idem.Repeated {
		return errShown
	}
	return v.showSecret("Webhook added", hook, true)
}

// updateWebhook changes a webhook.
func (v *visit) updateWebhook() error {
	form, in := v.readWebhook()
	in.IfVersion = form.Version
	hook, err := v.svc.Webhooks.Replace(v.ctx(), v.webhookKey(), in)
	if err != nil {
		return v.refused(err, form, &in)
	}
	note := "saved"
	if formsvc.SecretWarning(in.Secret) != "" {
		note = "saved-weak"
	}
	return v.redirect("/webhooks/"+string(hook.ID), url.Values{"note": {note}})
}
