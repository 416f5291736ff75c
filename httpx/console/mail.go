package console

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A mailPage has who gets mails about a form: its owners, and the people who send it.
type mailPage struct {
	Notices      []formsvc.Webhook
	Confirmation formsvc.Confirmation
	Off          bool // whether this server can't send mail
	Stale        bool // whether somebody else changed the campaign
	Problem      string

	Address        string // as typed
	Daily, ReplyTo bool
}

// mails shows who gets mails about the form.
func (v *visit) mails() error {
	return v.showMail(http.StatusOK, mailPage{Confirmation: v.campaign.Form.Confirmation})
}

func (v *visit) showMail(status int, p mailPage) error {
	hooks, err := v.svc.Webhooks.List(v.ctx(), v.account())
	if err != nil {
		return err
	}
	p.Notices = slices.DeleteFunc(hooks, func(w formsvc.Webhook) bool {
		return w.Address() == "" || w.CampaignID != "" && w.CampaignID != v.campaign.ID
	})
	p.Off, p.Stale = !v.h.opts.Mail, status == http.StatusConflict && p.Problem == ""
	return v.show(status, "mail", "Mails of "+v.campaign.Title, p)
}

// saveMail changes the mail to the people who send the form.
func (v *visit) saveMail() error {
	form := v.campaign.Form
	form.Confirmation = formsvc.Confirmation{
		Enabled: v.field("enabled") != "", Subject: asStored(v.field("subject"), form.Confirmation.Subject),
		Text: textAsStored(v.field("text"), form.Confirmation.Text), ReplyTo: v.field("replyTo"), Answers: v.field("answers") != "",
	}
	return v.saveForm(&form, v.path("/mail"), "mail-saved", func(status int) error {
		return v.showMail(status, mailPage{Confirmation: form.Confirmation})
	})
}

// addNotice asks somebody whether to get mails about the form.
func (v *visit) addNotice() error {
	p := mailPage{Confirmation: v.campaign.Form.Confirmation, Address: v.field("address"), Daily: v.field("when") == "daily", ReplyTo: v.field("reply") != ""}
	var created bool
	_, _, err := once(v, func(svc *formsvc.Service) (hook formsvc.Webhook, err error) {
		hook, created, err = svc.Webhooks.Create(v.ctx(), v.account(), formsvc.WebhookInput{
			URL: "mailto:" + p.Address, Events: []formsvc.EventType{webhook.ResponseCreated}, CampaignID: v.campaign.ID,
			Mail: formsvc.MailInput{Daily: p.Daily, ReplyTo: p.ReplyTo},
		})
		return hook, err
	})
	switch {
	case v.invalid(err):
		v.wrong = map[string]string{"address": "Enter one e-mail address, such as ada@example.com."}
		return v.showMail(http.StatusUnprocessableEntity, p)
	case errors.Is(err, formsvc.ErrLimit):
		p.Problem = "This account has the maximum of webhooks and addresses for mails. Remove one first."
		return v.showMail(http.StatusConflict, p)
	}
	note := map[bool]string{true: "mail-asked", false: "mail-known"}[created]
	return v.done(err, v.path("/mail"), note)
}

// ownPage matches the pages to which a form may lead back.
var ownPage = regexp.MustCompile(`^/campaigns/[0-9a-f-]{36}/(mail|responses/[0-9a-f-]{36})$`)

// backOr redirects to the page that the form of a request names as its own with a note, or else to a path with another one.
func (v *visit) backOr(err error, note, path, other string) error {
	if back := v.field("back"); ownPage.MatchString(back) {
		path, other = back, note
	}
	return v.done(err, path, other)
}

// A shownMail is a mail about a response.
type shownMail struct {
	formsvc.Delivery

	To   string
	Word string // the state in plain words
	Why  string // the last failure in the server's words; "" for none
}

// readMails reads the mails about the response.
func (v *visit) readMails(p *responsePage) error {
	list, err := v.svc.Deliveries.Mails(v.ctx(), p.Response.Key())
	if err != nil || len(list) == 0 {
		return err
	}
	hooks, err := v.svc.Webhooks.List(v.ctx(), v.account())
	if err != nil {
		return err
	}
	for _, d := range list {
		m := shownMail{Delivery: d, To: p.Response.User.Email, Word: map[formsvc.DeliveryState]string{
			formsvc.DeliveryDelivered: "sent", formsvc.DeliveryFailed: "failed", formsvc.DeliveryPending: "sending",
		}[d.State]}
		if i := slices.IndexFunc(hooks, func(w formsvc.Webhook) bool { return w.ID == d.WebhookID }); i >= 0 {
			m.To = hooks[i].Address()
		}
		if n := len(d.Log); n > 0 && d.Log[n-1].Error != "" {
			last := d.Log[n-1]
			if m.Why = replyText(last.Answer); m.Why == "" {
				m.Why = v.h.failureText(last.Error, last.Status)
			}
			if d.State == formsvc.DeliveryPending {
				m.Word = "trying again"
			}
		}
		p.Mails = append(p.Mails, m)
	}
	return nil
}

func byMail(w formsvc.Webhook) bool { return strings.HasPrefix(w.URL, "mailto:") }

// sentTo names the receiver of a webhook.
func sentTo(w formsvc.Webhook) string {
	switch {
	case w.ToSubmitters():
		return "Mails to people who sent a form"
	case w.Address() != "":
		return "Mails to " + w.Address()
	}
	return w.URL
}
