package console

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

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
