package formsvc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/webhook"
)

// A Webhook is a URL that receives events. Its JSON has neither secrets nor values of headers.
type Webhook struct {
	ID         ID
	AccountID  ID
	URL        string      // absolute, http or https; or mailto: and the e-mail address of somebody who gets notices
	Events     []EventType // what it listens to, in the order of [webhook.KnownEventTypes]
	CampaignID ID          // events of this campaign only; "" means all
	Secret     string      `json:"-"` // signs every request
	// Previous is the secret before Secret. Until PreviousUntil it still signs the service's own header, and the
	// Standard Webhooks header carries both signatures. "" means that there is none.
	Previous      string `json:"-"`
	PreviousUntil time.Time
	Headers       []Header // sent with every request, by name
	Mail          Mailing  // zero unless the URL is mailto:
	Disabled      bool     // receives only what is redelivered manually
	Version       int64    // 1 for a new webhook, one more with every change
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// A Header is a custom header of a webhook, such as a token that its receiver requires.
type Header struct {
	Name  string // in the canonical form of [net/http.CanonicalHeaderKey]
	Value string `json:"-"`
}

// Listens reports whether the webhook receives the event. Stores that filter by query must agree with it.
func (w *Webhook) Listens(e *Event) bool {
	if e.Test {
		return w.ID == e.To
	}
	wanted := slices.Contains(w.Events, e.Type)
	if w.ToSubmitters() {
		wanted = e.Confirm
	}
	return wanted && !w.Disabled && !w.Mail.Daily && w.AccountID == e.AccountID && (w.CampaignID == "" || w.CampaignID == e.CampaignID)
}

// WebhookKey names one webhook of one account.
type WebhookKey struct{ AccountID, ID ID }

// WebhookInput is the part of a webhook that the account's owner sets.
type WebhookInput struct {
	URL        string      // what must be escaped in a request is escaped: a space becomes %20
	Events     []EventType // at least one
	CampaignID ID          // "" means all campaigns
	Secret     string      // 1 to 256 bytes of UTF-8, see [SecretWarning]; "" generates one, or keeps the current one
	Headers    []HeaderInput
	Mail       MailInput // zero unless the URL is mailto:
	Disabled   bool
	IfVersion  int64 // Replace fails with ErrStale unless the webhook has this version; 0 means any version
}

// HeaderInput is a custom header of a webhook. With Keep, the webhook's current value for that name
// is kept; that is refused if the scheme, host or port of the URL changes.
type HeaderInput struct {
	Name, Value string
	Keep        bool
}

// Webhooks creates and manages webhooks. It is safe for concurrent use.
type Webhooks struct{ s *core }

// Create creates a webhook. If the account already has one with the same URL, events and campaign,
// it returns that one with created false, so subscribing twice is harmless. With a Secret or Headers,
// Create then fails with a *[WebhookExistsError], also if they are the same, so that they can't be guessed.
// It fails with a *[ValidationError], also if the account has no such campaign, and with a *[LimitError]
// at the 51st webhook of an account.
func (w Webhooks) Create(ctx context.Context, account ID, in WebhookInput) (_ Webhook, created bool, err error) {
	defer wrap(&err, "create webhook")
	s, err := once(ctx, w.s, account, func() (subscription, error) { return w.create(ctx, account, in) })
	return s.Webhook, s.Created, err
}

// A subscription is what Create returns.
type subscription struct {
	Webhook Webhook
	Created bool
}

func (w Webhooks) create(ctx context.Context, account ID, in WebhookInput) (subscription, error) {
	hook, v, err := w.make(ctx, account, in)
	if err == nil {
		hook.Headers = v.headersOf(in.Headers, nil, false)
		err = v.err()
	}
	if err != nil {
		return subscription{}, err
	}
	if hook.Secret == "" {
		hook.Secret = newSecret()
	}
	limit := MaxWebhooks
	if _, err := w.s.store.Webhook(ctx, WebhookKey{AccountID: account, ID: account}); err == nil {
		limit++
	}
	now := w.s.now()
	hook.ID, hook.Version, hook.CreatedAt, hook.UpdatedAt = w.s.NewID(now), 1, now, now
	hook.settle(now)
	question, err := w.question(ctx, &hook)
	if err != nil {
		return subscription{}, err
	}
	stored, created, err := w.s.store.CreateWebhook(ctx, hook, limit, func(stored *Webhook, created bool) (Change, error) {
		if !created && (in.Secret != "" || len(in.Headers) > 0) {
			return Change{}, &WebhookExistsError{ID: stored.ID}
		}
		change := Change{Idempotency: record(w.s, account, "", &subscription{w.current(*stored), created})}
		if created {
			change.Audit, change.Events = w.audit(stored, AuditWebhookCreated), question
		}
		return change, nil
	})
	if err != nil {
		return subscription{}, limited(err, "webhooks", MaxWebhooks)
	}
	return subscription{w.current(stored), created}, nil
}

// audit returns an entry about a webhook. It contains only the host of the URL, since paths and
// queries may contain secrets.
func (w Webhooks) audit(hook *Webhook, action AuditAction) *AuditEntry {
	details := map[string]string{"events": strings.Trim(fmt.Sprint(hook.Events), "[]")}
	if u, err := url.Parse(hook.URL); err == nil {
		details["host"] = u.Host
	}
	if hook.Disabled {
		details["disabled"] = "true"
	}
	return w.s.audit(hook.AccountID, action, hook.ID, details)
}

// Replace sets every field of in. in.Secret replaces the current and the previous secret at once;
// "" keeps both. To change the secret without losing deliveries, use [Webhooks.Rotate]. Replace
// fails with [ErrStale], and with [ErrNotFound] and *[ValidationError] as Create does.
func (w Webhooks) Replace(ctx context.Context, key WebhookKey, in WebhookInput) (_ Webhook, err error) {
	defer wrap(&err, "replace webhook")
	next, v, err := w.make(ctx, key.AccountID, in)
	if err != nil {
		return Webhook{}, err
	}
	next.ID = key.ID
	question, err := w.question(ctx, &next)
	if err != nil {
		return Webhook{}, err
	}
	wrong := v.err()
	hook, err := w.s.updateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		v := v
		if hook.CampaignID == next.CampaignID { // may have been deleted since
			v.Fields = slices.DeleteFunc(slices.Clone(v.Fields), func(f FieldError) bool { return f.Code == unknownCampaign })
		}
		wrong = v.err()
		if in.IfVersion != 0 && hook.Version != in.IfVersion {
			return Change{}, ErrStale
		}
		// Only here the values to keep are known.
		v.Fields = slices.Clip(v.Fields)
		headers := v.headersOf(in.Headers, hook.Headers, !sameOrigin(hook.URL, next.URL))
		if (hook.Address() == "") != (next.Address() == "") {
			v.add("/url", "not_allowed", "must not change between http and mailto: create another webhook")
		}
		if err := v.err(); err != nil {
			return Change{}, err
		}
		moved := hook.Address() != next.Address()
		hook.URL, hook.Events, hook.CampaignID, hook.Disabled = next.URL, next.Events, next.CampaignID, next.Disabled
		hook.Headers, hook.Mail.MailInput = headers, next.Mail.MailInput
		if moved {
			hook.Mail.ConfirmedAt, hook.Secret = time.Time{}, newSecret()
		}
		hook.settle(w.s.now())
		if in.Secret != "" {
			hook.Secret, hook.Previous, hook.PreviousUntil = in.Secret, "", time.Time{}
		}
		change := w.changed(hook, AuditWebhookUpdated)
		if moved {
			change.Events = question
		}
		return change, nil
	})
	if wrong != nil && err != nil && !errors.Is(err, ErrInvalid) {
		err = wrong // is reported before faults of the record
	}
	return w.current(hook), err
}

// webhook returns a webhook that people manage.
func (c *core) webhook(ctx context.Context, key WebhookKey) (Webhook, error) {
	if key.ID == key.AccountID { // see ToSubmitters
		return Webhook{}, ErrNotFound
	}
	return c.store.Webhook(ctx, key)
}

// updateWebhook changes such a webhook.
func (c *core) updateWebhook(ctx context.Context, key WebhookKey, decide func(*Webhook) (Change, error)) (Webhook, error) {
	if key.ID == key.AccountID {
		return Webhook{}, ErrNotFound
	}
	return c.store.UpdateWebhook(ctx, key, decide)
}

// question returns the test event by which the recipient of a webhook is asked whether to get mails, or none for HTTP.
func (w Webhooks) question(ctx context.Context, hook *Webhook) ([]Event, error) {
	if hook.Address() == "" || len(hook.Events) == 0 {
		return nil, nil
	}
	event, err := w.s.testEvent(ctx, hook)
	return []Event{event}, err
}

// unknownCampaign is the code of a fault.
const unknownCampaign = "unknown_campaign"

// make returns the webhook of in, without headers and the fields of a new record, and its faults.
func (w Webhooks) make(ctx context.Context, account ID, in WebhookInput) (_ Webhook, v ValidationError, _ error) {
	v = w.s.faults()
	mail := in.isMail()
	if mail {
		in.URL = mailto + in.URL[len(mailto):]
	} else {
		in.URL = encodedURL(in.URL)
	}
	in.check(&v)
	checkHeaders(&v, in.Headers)
	bad := slices.ContainsFunc(v.Fields, func(f FieldError) bool { return f.Pointer == "/url" })
	if !bad && !mail && w.s.CheckURL != nil {
		if err := w.s.CheckURL(ctx, in.URL); err != nil {
			v.add("/url", "url_refused", "%v", err)
		}
	}
	if in.CampaignID != "" {
		_, err := w.s.store.Campaign(ctx, CampaignKey{AccountID: account, ID: in.CampaignID})
		switch {
		case errors.Is(err, ErrNotFound):
			v.add("/campaignUuid", unknownCampaign, "must be a campaign of this account")
		case err != nil:
			return Webhook{}, v, fmt.Errorf("campaign: %w", err)
		}
	}
	hook := Webhook{
		AccountID: account, URL: in.URL, CampaignID: in.CampaignID, Secret: in.Secret, Disabled: in.Disabled,
		Mail: Mailing{MailInput: in.Mail},
	}
	for _, t := range webhook.KnownEventTypes() {
		if slices.Contains(in.Events, t) {
			hook.Events = append(hook.Events, t)
		}
	}
	return hook, v, nil
}

// current returns the webhook without an expired previous secret.
func (w Webhooks) current(hook Webhook) Webhook {
	if !w.s.now().Before(hook.PreviousUntil) {
		hook.Previous, hook.PreviousUntil = "", time.Time{}
	}
	return hook
}

// changed notes a change of a webhook, and returns it for the store.
func (w Webhooks) changed(hook *Webhook, action AuditAction) Change {
	hook.Version++
	hook.UpdatedAt = w.s.now()
	return Change{Audit: w.audit(hook, action)}
}

// unescaped matches an escape, or a character of a URL that must not stand in the request line of HTTP, such as a space. Control
// characters don't match, so that they are refused.
var unescaped = regexp.MustCompile("%[0-9A-Fa-f]{2}|[ %\"<>\\\\^`{|}]|[^\\x00-\\x7f]")

// encodedURL escapes the characters of a URL that must be. Invalid UTF-8 stays, so that it is refused.
func encodedURL(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	return unescaped.ReplaceAllStringFunc(s, func(part string) string {
		if part[0] == '%' && len(part) > 1 {
			return part
		}
		return url.PathEscape(part)
	})
}

func (in *WebhookInput) check(v *ValidationError) {
	u := httpURL(in.URL)
	switch {
	case in.URL == "":
		v.add("/url", "required", "is required")
	case in.isMail():
		in.checkMail(v)
	case in.Mail != MailInput{}:
		v.add("/mail", "not_allowed", "must be absent unless the url begins with mailto:")
	case u == nil:
		v.add("/url", "invalid_url", "must be an absolute http or https URL")
	case u.User != nil:
		v.add("/url", "invalid_url", "must not carry a user name or password")
	case u.Fragment != "":
		v.add("/url", "invalid_url", "must not have a fragment")
	}
	v.checkLine("/url", in.URL, 2048)
	if len(in.Events) == 0 {
		v.add("/events", "required", "must name at least one event")
	}
	for i, t := range in.Events {
		if !slices.Contains(webhook.KnownEventTypes(), t) {
			v.add(fmt.Sprintf("/events/%d", i), "unknown_event", "must be one of %v", webhook.KnownEventTypes())
		}
	}
	checkSecret(v, in.Secret)
}

// SetDisabled disables a webhook or enables it again. While it is disabled, events create no deliveries for it, and
// waiting deliveries stay waiting; only manual redeliveries are sent. It fails with [ErrNotFound].
func (w Webhooks) SetDisabled(ctx context.Context, key WebhookKey, disabled bool) (_ Webhook, err error) {
	defer wrap(&err, "webhook")
	hook, err := w.s.updateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		if hook.Disabled == disabled {
			return Change{}, nil
		}
		if !disabled && hook.Address() != "" && hook.Mail.ConfirmedAt.IsZero() {
			return Change{}, ErrUnconfirmed
		}
		hook.Disabled = disabled
		hook.settle(w.s.now())
		return w.changed(hook, AuditWebhookUpdated), nil
	})
	return w.current(hook), err
}

// Test sends a test event to a webhook. The event has the first type that the webhook listens to
// and is marked with "test": true. It is delivered like every other one, but with one attempt only,
// and even if the webhook is disabled. It fails with [ErrNotFound].
func (w Webhooks) Test(ctx context.Context, key WebhookKey) (_ Delivery, err error) {
	defer wrap(&err, "test webhook")
	return once(ctx, w.s, key.AccountID, func() (Delivery, error) {
		hook, err := w.s.webhook(ctx, key)
		if err != nil {
			return Delivery{}, err
		}
		event, err := w.s.testEvent(ctx, &hook)
		if err != nil {
			return Delivery{}, err
		}
		d := event.Delivery(key.ID)
		_, err = w.s.updateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
			return Change{
				Events: []Event{event}, Audit: w.audit(hook, AuditWebhookTested), Idempotency: record(w.s, key.AccountID, "", &d),
			}, nil
		})
		return d, err
	})
}

// Get returns a webhook, also that of [Webhook.ToSubmitters], or [ErrNotFound].
func (w Webhooks) Get(ctx context.Context, key WebhookKey) (_ Webhook, err error) {
	defer wrap(&err, "webhook")
	hook, err := w.s.store.Webhook(ctx, key)
	return w.current(hook), err
}

// List returns the account's webhooks, oldest first.
func (w Webhooks) List(ctx context.Context, account ID) (_ []Webhook, err error) {
	defer wrap(&err, "webhooks")
	hooks, err := w.s.store.Webhooks(ctx, account)
	hooks = slices.DeleteFunc(hooks, func(w Webhook) bool { return w.ToSubmitters() })
	for i := range hooks {
		hooks[i] = w.current(hooks[i])
	}
	return hooks, err
}

// Delete removes a webhook. Waiting deliveries are never sent; attempts under way continue. It
// fails with [ErrNotFound] if the account has no such webhook.
func (w Webhooks) Delete(ctx context.Context, key WebhookKey) (err error) {
	defer wrap(&err, "delete webhook")
	if key.ID == key.AccountID {
		return ErrNotFound
	}
	return w.s.store.DeleteWebhook(ctx, key, Change{Audit: w.s.audit(key.AccountID, AuditWebhookDeleted, key.ID, nil)})
}

// AppendJSON appends the webhook as the JSON object that clients get. It has every field that clients can set, so that they can change a
// webhook that they read and send it back. It has no secret, and the values of headers are null, which keeps them when sent back.
func (w *Webhook) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"uuid":`, string(w.ID))
	b = appendText(b, `,"url":`, w.URL)
	b = append(b, `,"events":`...)
	b = appendStrings(b, w.Events)
	b = appendOptional(b, `,"campaignUuid":`, string(w.CampaignID))
	b = fmt.Appendf(b, `,"disabled":%t,"headers":{`, w.Disabled)
	for i, header := range w.Headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, header.Name), `:null`...)
	}
	b = append(b, '}')
	if w.Address() != "" {
		b = fmt.Appendf(b, `,"mail":{"daily":%t,"replyTo":%t`, w.Mail.Daily, w.Mail.ReplyTo)
		b = append(appendTime(b, `,"confirmedAt":`, w.Mail.ConfirmedAt), '}')
	}
	b = appendTime(b, `,"previousSecretExpiresAt":`, w.PreviousUntil)
	b = appendTime(b, `,"createdAt":`, w.CreatedAt)
	return append(appendTime(b, `,"updatedAt":`, w.UpdatedAt), '}')
}
