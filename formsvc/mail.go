package formsvc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/formsvc/toolkit/webhook"
)

// A Confirmation is the mail that the people who sent a form get. It has the owner's text, the title, the reference and the
// time: nothing that a visitor wrote, so that nobody can have words of theirs sent to somebody else.
type Confirmation struct {
	Enabled bool   `json:"enabled,omitzero"`
	Subject string `json:"subject,omitzero"` // at most 200 characters; "" for one in the language of the form
	Text    string `json:"text,omitzero"`    // at most 5,000 characters; "" for one in the language of the form
	ReplyTo string `json:"replyTo,omitzero"` // the e-mail address that replies go to; "" for none
	// Answers adds what the person wrote, if the address is known to belong to its owner: it confirmed that it wants mails of
	// this account, or a member of the account has it.
	Answers bool `json:"answers,omitzero"`
}

// Limits of a [Confirmation] in characters.
const (
	maxMailSubject = 200
	maxMailText    = 5_000
)

// Defaults of [Options].
const (
	DefaultMailsPerAddress = 3
	DefaultMailsPerHour    = 50
)

// checkConfirmation notes the faults of a confirmation.
func (e *ValidationError) checkConfirmation(c *Confirmation) {
	e.checkLine("/form/confirmation/subject", c.Subject, maxMailSubject)
	if strings.ContainsAny(c.Subject, "\r\n") {
		e.add("/form/confirmation/subject", "invalid_value", "must be one line")
	}
	e.checkLine("/form/confirmation/text", c.Text, maxMailText)
	if c.ReplyTo != "" && !validEmail(c.ReplyTo) {
		e.add("/form/confirmation/replyTo", "invalid_email", "must be an e-mail address")
	}
}

// MailInput is how an owner's notice is sent: by a webhook whose URL is mailto: with an e-mail address.
type MailInput struct {
	Daily   bool // one mail a day with the numbers of new responses, instead of one for each event
	ReplyTo bool // replies go to the person who sent the form
}

// A Mailing is the state of a webhook that sends mail. It is disabled until the recipient confirms.
type Mailing struct {
	MailInput

	ConfirmedAt time.Time // when the recipient agreed; zero before, and after unsubscribing
	NextAt      time.Time // when the next daily mail is due; zero unless Daily
}

// mailto is how the URL of a webhook begins that sends mail.
const mailto = "mailto:"

// Address returns the e-mail address of a webhook that sends mail, or "".
func (w *Webhook) Address() string {
	address, _ := strings.CutPrefix(w.URL, mailto)
	if address == w.URL {
		return ""
	}
	return address
}

// ToSubmitters reports whether this is the webhook that sends the [Confirmation] mails of an account. It has the account's
// ID, is created with the first of them, is neither listed nor counted with the others, and can't be changed.
func (w *Webhook) ToSubmitters() bool { return w.ID == w.AccountID }

// isMail reports whether the URL of an input is one for mail, whatever the case of its scheme.
func (in *WebhookInput) isMail() bool {
	return len(in.URL) >= len(mailto) && strings.EqualFold(in.URL[:len(mailto)], mailto)
}

// checkMail notes the faults that only a webhook with a mailto: URL has.
func (in *WebhookInput) checkMail(v *ValidationError) {
	if !validEmail(in.URL[len(mailto):]) {
		v.add("/url", "invalid_url", "must be mailto: and one e-mail address")
	}
	if in.Secret != "" {
		v.add("/secret", "not_allowed", "must be absent: mail isn't signed")
	}
	if len(in.Headers) > 0 {
		v.add("/headers", "not_allowed", "must be absent: they are for HTTP")
	}
}

// settle makes a webhook that sends mail wait for the confirmation of its recipient, and schedules the daily mail.
func (w *Webhook) settle(now time.Time) {
	if w.Address() == "" {
		return
	}
	w.Disabled = w.Disabled || w.Mail.ConfirmedAt.IsZero()
	switch {
	case !w.Mail.Daily || w.Disabled:
		w.Mail.NextAt = time.Time{}
	case w.Mail.NextAt.IsZero():
		w.Mail.NextAt = nextSummary(now)
	}
}

// summaryHour is when daily mails are sent, in UTC.
const summaryHour = 6 * time.Hour

func nextSummary(now time.Time) time.Time {
	return now.Add(-summaryHour).Truncate(24 * time.Hour).Add(24*time.Hour + summaryHour)
}

// ErrUnconfirmed means that the recipient of a webhook's mails hasn't confirmed. It is an [ErrConflict].
var ErrUnconfirmed = fmt.Errorf("the recipient hasn't confirmed the address: %w", ErrConflict)

// The purposes of a mail's link.
const (
	confirming    = 'c'
	unsubscribing = 'u'
)

// MailToken returns what the link in a mail proves: that its holder reads the mails of the webhook's address. With confirm it is for
// [Webhooks.Confirm], otherwise for [Webhooks.Unsubscribe]. It is valid as long as the webhook has this address: a new one comes with another secret.
func (w *Webhook) MailToken(confirm bool) string {
	token := []byte{unsubscribing}
	if confirm {
		token[0] = confirming
	}
	account, _ := uuid.Parse(string(w.AccountID)) // of a stored record
	id, _ := uuid.Parse(string(w.ID))
	token = slices.Concat(token, account[:], id[:])
	mac := hmac.New(sha256.New, []byte(w.Secret))
	mac.Write(token)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(token)[:len(token)+16])
}

// ByMailToken returns the webhook of a link, and whether the link is for [Webhooks.Confirm]. It fails with [ErrNotFound].
func (w Webhooks) ByMailToken(ctx context.Context, token string) (_ Webhook, confirm bool, err error) {
	defer wrap(&err, "link of a mail")
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != 1+16+16+16 {
		return Webhook{}, false, ErrNotFound
	}
	account, id := uuid.UUID(b[1:17]), uuid.UUID(b[17:33])
	confirm = b[0] == confirming
	hook, err := w.s.store.Webhook(ctx, WebhookKey{AccountID: ID(account.String()), ID: ID(id.String())})
	if err == nil && (hook.Address() == "" || !hmac.Equal([]byte(token), []byte(hook.MailToken(confirm)))) {
		err = ErrNotFound
	}
	return hook, confirm, err
}

// Confirm is the recipient's agreement to get mails: it enables the webhook. token is that of [Webhook.MailToken]. It fails with [ErrNotFound].
func (w Webhooks) Confirm(ctx context.Context, token string) (Webhook, error) {
	return w.agree(ctx, token, true)
}

// Unsubscribe is the recipient's wish to get no more mails: it disables the webhook until the recipient confirms again. token is
// that of [Webhook.MailToken]. It fails with [ErrNotFound].
func (w Webhooks) Unsubscribe(ctx context.Context, token string) (Webhook, error) {
	return w.agree(ctx, token, false)
}

func (w Webhooks) agree(ctx context.Context, token string, yes bool) (_ Webhook, err error) {
	hook, confirm, err := w.ByMailToken(ctx, token)
	if err == nil && confirm != yes {
		err = ErrNotFound
	}
	if err != nil {
		return Webhook{}, err
	}
	return w.s.store.UpdateWebhook(ctx, WebhookKey{AccountID: hook.AccountID, ID: hook.ID}, func(hook *Webhook) (Change, error) {
		if yes != hook.Mail.ConfirmedAt.IsZero() {
			return Change{}, nil // repeated
		}
		now := w.s.now()
		if hook.Mail.ConfirmedAt = (time.Time{}); yes {
			hook.Mail.ConfirmedAt = now
		}
		hook.Disabled = !yes
		hook.settle(now)
		return w.changed(hook, AuditWebhookUpdated), nil
	})
}

// publishing creates the webhook that sends an account's confirmations, if a campaign that is about to be stored has one.
func (c *core) publishing(ctx context.Context, campaign *Campaign) error {
	if !campaign.Form.Confirmation.Enabled {
		return nil
	}
	account, now := campaign.AccountID, c.now()
	hook := Webhook{
		ID: account, AccountID: account, URL: mailto, Events: []EventType{webhook.ResponseCreated}, Secret: newSecret(),
		Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	_, _, err := c.store.CreateWebhook(ctx, hook, MaxWebhooks+1, nil)
	return err
}

// created returns the event of a new response. fromForm says whether a visitor sent it.
func (c *core) created(ctx context.Context, campaign *Campaign, r *Response, now time.Time, fromForm bool) Event {
	e := c.newEvent(ctx, webhook.ResponseCreated, campaign, r, now, eventExtra{})
	e.Confirm = fromForm && campaign.Form.Confirmation.Enabled && r.User.Email != ""
	return e
}

// A MailLimitError means that a mail may not be sent now, to protect people from mails that they don't want.
type MailLimitError struct {
	Text string // how many mails there were
	// Until is when the next one may be sent, if the account has sent all of this hour. It is zero if the address has got all of
	// this day: then the mail is dropped.
	Until time.Time
}

// Error returns the text.
func (e *MailLimitError) Error() string { return e.Text }

// TakeMail counts a mail to somebody who hasn't confirmed: a [Confirmation], or the question whether to get mails. Notices aren't
// counted, so that no visitor can delay them. It fails with a *[MailLimitError] as [Options].MailsPerAddress and MailsPerHour say.
// The counts are those of all nodes. Questions have an hour's share of their own, which visitors can't use up.
func (w Webhooks) TakeMail(ctx context.Context, account ID, address string, question bool) (err error) {
	defer wrap(&err, "mail")
	of := "mails of " + string(account)
	hourly := map[bool]string{true: "questions in ", false: ""}[question] + of
	counts := []QuotaCount{w.s.countIn(time.Hour, hourly), w.s.countIn(24*time.Hour, of+" to "+mailbox(address))}
	used, err := w.s.store.AddQuota(ctx, counts)
	switch perHour, perAddress := w.s.MailsPerHour, w.s.MailsPerAddress; {
	case err != nil:
		return err
	case perHour != 0 && used[0] > perHour:
		err = &MailLimitError{fmt.Sprintf("this account has sent %d mails this hour", perHour), counts[0].Start.Add(time.Hour)}
	case perAddress != 0 && used[1] > perAddress:
		err = &MailLimitError{Text: fmt.Sprintf("this address has got %d mails today", perAddress)}
	default:
		return nil
	}
	counts[0].N, counts[1].N = -1, -1 // it isn't sent
	_, failed := w.s.store.AddQuota(ctx, counts)
	return cmp.Or(failed, err)
}

// mailbox returns what is alike for the addresses of one mailbox that anyone can make up: those with a plus and more, and at
// Gmail with dots.
func mailbox(address string) string {
	local, domain, _ := strings.Cut(FoldEmail(address), "@")
	local, _, _ = strings.Cut(local, "+")
	if domain == "gmail.com" || domain == "googlemail.com" {
		local, domain = strings.ReplaceAll(local, ".", ""), "gmail.com"
	}
	return local + "@" + domain
}

// Known reports whether an address is known to belong to its owner in an account: it confirmed a webhook, or a member has it.
func (w Webhooks) Known(ctx context.Context, account ID, address string) (_ bool, err error) {
	defer wrap(&err, "address")
	address = FoldEmail(address)
	hooks, err := w.s.store.Webhooks(ctx, account)
	for i := range hooks {
		if FoldEmail(hooks[i].Address()) == address && !hooks[i].Mail.ConfirmedAt.IsZero() {
			return true, err
		}
	}
	if err != nil {
		return false, err
	}
	members, err := w.s.store.Members(ctx, MemberQuery{AccountID: account, Email: address})
	return slices.ContainsFunc(members, func(m Member) bool { return !m.JoinedAt.IsZero() }), err
}

// Mails returns the deliveries by mail about a response, oldest event first: those of its confirmation, and of notices. It fails with [ErrNotFound].
func (d Deliveries) Mails(ctx context.Context, key ResponseKey) (_ []Delivery, err error) {
	defer wrap(&err, "mails")
	hooks, err := d.s.store.Webhooks(ctx, key.AccountID)
	hooks = slices.DeleteFunc(hooks, func(w Webhook) bool {
		return !strings.HasPrefix(w.URL, mailto) || w.CampaignID != "" && w.CampaignID != key.CampaignID
	})
	if err != nil || len(hooks) == 0 {
		return nil, err
	}
	events, err := d.s.store.EventsAbout(ctx, key, MaxRecent)
	if err != nil {
		return nil, err
	}
	var list []Delivery
	for i := range events {
		for j := range hooks {
			delivery, err := d.Get(ctx, DeliveryKey{AccountID: key.AccountID, ID: DeliveryID(events[i].ID, hooks[j].ID)})
			if ignoreNotFound(err) != nil {
				return nil, err
			}
			if err == nil {
				list = append(list, delivery)
			}
		}
	}
	return list, nil
}

// summaryForms is how many forms a daily mail counts: the newest of the account.
const summaryForms = 200

// SendSummaries makes the daily mails that are due. [Service.Run] calls it each minute. A mail that was made before is not made again.
func (w Webhooks) SendSummaries(ctx context.Context) (err error) {
	defer wrap(&err, "daily mails")
	due, err := w.s.store.DueSummaries(ctx, w.s.now(), 100)
	for i := range due {
		if err = cmp.Or(err, w.summarize(ctx, &due[i])); err != nil {
			return err
		}
	}
	return err
}

func (w Webhooks) summarize(ctx context.Context, hook *Webhook) error {
	due := hook.Mail.NextAt
	until := nextSummary(w.s.now()).Add(-24 * time.Hour) // later than due if no server ran then
	event, n, err := w.s.summary(ctx, hook, due.Add(-24*time.Hour), until)
	if err != nil {
		return err
	}
	_, err = w.s.store.UpdateWebhook(ctx, WebhookKey{AccountID: hook.AccountID, ID: hook.ID}, func(hook *Webhook) (change Change, _ error) {
		if !hook.Mail.NextAt.Equal(due) {
			return change, nil // another node was faster
		}
		hook.Mail.NextAt = until.Add(24 * time.Hour)
		hook.Version++ // it is written
		if n > 0 {
			change.add(event)
		}
		return change, nil
	})
	return ignoreNotFound(err)
}

// summary returns the event of a daily mail, and how many responses came since a time and before until.
func (c *core) summary(ctx context.Context, hook *Webhook, since, until time.Time) (Event, int64, error) {
	campaigns, err := c.summaryOf(ctx, hook)
	if err != nil {
		return Event{}, 0, err
	}
	all := int64(0)
	e := Event{
		ID: c.NewID(c.now()), AccountID: hook.AccountID, CampaignID: hook.AccountID, ResponseID: hook.AccountID,
		Type: webhook.ResponseCreated, Test: true, To: hook.ID, Retried: true, CreatedAt: c.now(),
	}
	b := appendText(nil, `{"id":`, string(e.ID))
	b = appendText(b, `,"event":`, string(e.Type))
	b = appendTime(b, `,"timestamp":`, e.CreatedAt)
	b = appendTime(b, `,"test":true,"data":{"since":`, since)
	b = append(appendTime(b, `,"until":`, until), `,"campaigns":[`...)
	for i := range campaigns {
		key := campaigns[i].Key()
		page, err := c.store.Responses(ctx, ResponseQuery{AccountID: key.AccountID, CampaignID: key.ID, Page: PageQuery{Limit: 1}, Filter: ResponseFilter{
			NotStatus: StatusSpam, CreatedAfter: since.Add(-time.Microsecond), CreatedBefore: until,
		}})
		if ignoreNotFound(err) != nil {
			return Event{}, 0, err
		}
		if page.Total == 0 {
			continue
		}
		if all > 0 {
			b = append(b, ',')
		}
		all += page.Total
		b = appendText(appendText(b, `{"uuid":`, string(key.ID)), `,"title":`, campaigns[i].Title)
		b = fmt.Appendf(b, `,"responses":%d}`, page.Total)
	}
	e.Payload = append(b, `]}}`...)
	return e, all, nil
}

// summaryOf returns the campaigns that a daily mail is about.
func (c *core) summaryOf(ctx context.Context, hook *Webhook) ([]Campaign, error) {
	if hook.CampaignID == "" {
		page, err := c.store.Campaigns(ctx, CampaignQuery{AccountID: hook.AccountID, Page: PageQuery{Limit: summaryForms}})
		return page.Items, err
	}
	campaign, err := c.store.Campaign(ctx, CampaignKey{AccountID: hook.AccountID, ID: hook.CampaignID})
	return []Campaign{campaign}, ignoreNotFound(err)
}
