package formsvc

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// A Webhook is an address that is told of events.
type Webhook struct {
	ID         ID
	AccountID  ID
	URL        string      // absolute, http or https
	Events     []EventType // what it listens to, in the order of [webhook.EventTypes]
	CampaignID ID          // events of this campaign only; "" means all
	Secret     string      // signs every request
	// Previous is the secret before Secret. Until PreviousUntil it still signs
	// the service's own header, and the Standard Webhooks header carries both
	// signatures. "" means that there is none.
	Previous      string
	PreviousUntil time.Time
	Headers       []Header // sent with every request, by name
	Disabled      bool     // gets nothing but what is redelivered by hand
	Version       int64    // 1 when made, one more with every change
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// A Header is a request header of a webhook's own, such as a token that its
// receiver wants to see.
type Header struct {
	Name  string // in the canonical form of [net/http.CanonicalHeaderKey]
	Value string
}

// Listens reports whether the webhook is told of the event. Stores that choose
// by query must agree with it.
func (w *Webhook) Listens(e *Event) bool {
	return !w.Disabled && w.AccountID == e.AccountID &&
		(w.CampaignID == "" || w.CampaignID == e.CampaignID) && slices.Contains(w.Events, e.Type)
}

// WebhookKey names one webhook of one account.
type WebhookKey struct{ AccountID, ID ID }

// WebhookInput is what an account's owner decides about a webhook.
type WebhookInput struct {
	URL        string
	Events     []EventType // at least one
	CampaignID ID          // "" means all campaigns
	Secret     string      // 1 to 256 bytes of UTF-8, see [SecretWarning]; "" means that one is generated, or kept
	Headers    []HeaderInput
	Disabled   bool
}

// HeaderInput is a header of a webhook's own. With Keep, the value is the one
// that the webhook has for that name.
type HeaderInput struct {
	Name, Value string
	Keep        bool
}

// A Subscription is what [Webhooks.Create] returns, for [Once.Reply].
type Subscription struct {
	Webhook Webhook
	Created bool // false when there was one already
}

// Webhooks makes and manages webhooks. It is safe for concurrent use.
type Webhooks struct{ s *core }

// Create makes a webhook. When the account has one with the same URL, events and
// campaign already, it returns that one with created false, so that subscribing
// twice is harmless; it fails with a *[WebhookExistsError] when in gives another secret
// than that one's, or other headers, since they would otherwise be ignored.
//
// It fails with a *[ValidationError], also when the campaign is not the account's,
// and with [ErrLimit] at the 51st webhook of an account.
func (w Webhooks) Create(ctx context.Context, account ID, in WebhookInput) (_ Webhook, created bool, err error) {
	defer w.s.span(&ctx, "Webhooks.Create").end(&err)
	hook, v, err := w.make(ctx, account, in)
	if err == nil {
		hook.Headers = v.headersOf(in.Headers, nil)
		err = v.err()
	}
	if err != nil {
		return Webhook{}, false, fmt.Errorf("formsvc: create webhook: %w", err)
	}
	if hook.Secret == "" {
		hook.Secret = newSecret()
	}
	now := w.s.now()
	hook.ID, hook.Version, hook.CreatedAt, hook.UpdatedAt = w.s.newID(now), 1, now, now
	stored, created, err := w.s.store.CreateWebhook(ctx, hook, MaxWebhooks, func(stored *Webhook, created bool) (Change, error) {
		if !created && (in.Secret != "" && in.Secret != stored.Secret ||
			len(in.Headers) > 0 && !slices.Equal(hook.Headers, stored.Headers)) {
			return Change{}, &WebhookExistsError{ID: stored.ID}
		}
		change := Change{Idempotency: w.s.record(&Subscription{Webhook: w.current(*stored), Created: created})}
		if created {
			change.Audit = w.audit(stored, AuditWebhookCreated)
		}
		return change, nil
	})
	if err != nil {
		return Webhook{}, false, fmt.Errorf("formsvc: create webhook: %w", err)
	}
	return w.current(stored), created, nil
}

// audit returns an entry about a webhook. Of its address it names the host alone:
// paths and queries may hold secrets.
func (w Webhooks) audit(hook *Webhook, action AuditAction) *AuditEntry {
	events := make([]string, len(hook.Events))
	for i, t := range hook.Events {
		events[i] = string(t)
	}
	details := map[string]string{"events": strings.Join(events, " ")}
	if u, err := url.Parse(hook.URL); err == nil {
		details["host"] = u.Host
	}
	if hook.Disabled {
		details["disabled"] = "true"
	}
	return w.s.audit(hook.AccountID, action, hook.ID, details)
}

// Replace sets everything the owner decides. A secret in in replaces the current
// one at once, and the previous one with it; without one, secrets stay (see
// [Webhooks.Rotate] for changing it without losing deliveries). ifVersion names
// the version the caller has seen, and the call fails with [ErrStale] when the
// webhook is another by now; 0 means any. It fails with [ErrNotFound] and
// *[ValidationError] as Create does.
func (w Webhooks) Replace(ctx context.Context, key WebhookKey, in WebhookInput, ifVersion int64) (_ Webhook, err error) {
	defer w.s.span(&ctx, "Webhooks.Replace").end(&err)
	next, v, err := w.make(ctx, key.AccountID, in)
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: replace webhook: %w", err)
	}
	hook, err := w.s.store.UpdateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		if ifVersion != 0 && hook.Version != ifVersion {
			return Change{}, ErrStale
		}
		// Only here is known which values there are to keep.
		v := ValidationError{Fields: slices.Clip(v.Fields), given: v.given}
		headers := v.headersOf(in.Headers, hook.Headers)
		if err := v.err(); err != nil {
			return Change{}, err
		}
		hook.URL, hook.Events, hook.CampaignID, hook.Disabled = next.URL, next.Events, next.CampaignID, next.Disabled
		hook.Headers = headers
		if in.Secret != "" {
			hook.Secret, hook.Previous, hook.PreviousUntil = in.Secret, "", time.Time{}
		}
		w.changed(hook)
		return Change{Audit: w.audit(hook, AuditWebhookUpdated)}, nil
	})
	if wrong := v.err(); wrong != nil && !errors.Is(err, ErrInvalid) {
		err = wrong // comes before what is wrong with the record
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: replace webhook: %w", err)
	}
	return w.current(hook), nil
}

// make returns the webhook that in describes, without its headers and what only a
// new one gets, and what is wrong with it.
func (w Webhooks) make(ctx context.Context, account ID, in WebhookInput) (_ Webhook, v ValidationError, _ error) {
	v = w.s.faults()
	in.check(&v)
	checkHeaders(&v, in.Headers)
	bad := slices.ContainsFunc(v.Fields, func(f FieldError) bool { return f.Pointer == "/url" })
	if !bad && w.s.checkURL != nil {
		if err := w.s.checkURL(ctx, in.URL); err != nil {
			v.add("/url", "url_refused", "%v", err)
		}
	}
	if in.CampaignID != "" {
		_, err := w.s.store.Campaign(ctx, CampaignKey{AccountID: account, ID: in.CampaignID})
		switch {
		case errors.Is(err, ErrNotFound):
			v.add("/campaignUuid", "unknown_campaign", "must be a campaign of this account")
		case err != nil:
			return Webhook{}, v, fmt.Errorf("campaign: %w", err)
		}
	}
	hook := Webhook{
		AccountID: account, URL: in.URL, CampaignID: in.CampaignID, Secret: in.Secret, Disabled: in.Disabled,
	}
	for _, t := range webhook.EventTypes() {
		if slices.Contains(in.Events, t) {
			hook.Events = append(hook.Events, t)
		}
	}
	return hook, v, nil
}

// current returns the webhook without a previous secret that no longer signs.
func (w Webhooks) current(hook Webhook) Webhook {
	if !w.s.now().Before(hook.PreviousUntil) {
		hook.Previous, hook.PreviousUntil = "", time.Time{}
	}
	return hook
}

func (w Webhooks) changed(hook *Webhook) {
	hook.Version++
	hook.UpdatedAt = w.s.now()
}

func (in *WebhookInput) check(v *ValidationError) {
	u, err := url.Parse(in.URL)
	switch {
	case in.URL == "":
		v.add("/url", "required", "is required")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
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
		if !slices.Contains(webhook.EventTypes(), t) {
			v.add(fmt.Sprintf("/events/%d", i), "unknown_event", "must be one of %v", webhook.EventTypes())
		}
	}
	checkSecret(v, in.Secret)
}

// Bounds of a secret in bytes. HMAC-SHA-256 gains nothing from more than 64.
const (
	strongSecret = 16
	maxSecret    = 256
)

// SecretWarning says that a secret given for a webhook is weak, for people to read, or
// returns "" when it is not. A weak one is taken: receivers exist that have one already.
func SecretWarning(secret string) string {
	if secret == "" || len(secret) >= strongSecret {
		return ""
	}
	return fmt.Sprintf("The secret is weak: with fewer than %d bytes it can be found out from one signed request.", strongSecret)
}

// checkSecret allows "".
func checkSecret(v *ValidationError, secret string) {
	if len(secret) > maxSecret {
		v.add("/secret", "out_of_range", "must have between 1 and %d bytes", maxSecret)
	}
	v.checkLine("/secret", secret, maxSecret)
}

// newSecret returns 32 random bytes in the form that Standard Webhooks
// recommends.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

// Rotation says how [Webhooks.Rotate] changes a secret.
type Rotation struct {
	// Secret is the new one, 1 to 256 bytes, see [SecretWarning]; "" means that one is generated.
	Secret string
	// Grace is for how long the old secret still signs, 0 to MaxGrace. 0 means
	// that it stops at once, as is right for one that leaked.
	Grace time.Duration
}

// Rotate gives a webhook a new secret. During the grace period
// x-service-signature is made with the old one, and webhook-signature carries
// one signature of each, so that receivers can change over when they like;
// afterwards only the new one signs. Rotating again during it drops the oldest
// of the three. It fails with [ErrNotFound] and *[ValidationError].
func (w Webhooks) Rotate(ctx context.Context, key WebhookKey, r Rotation) (_ Webhook, err error) {
	defer w.s.span(&ctx, "Webhooks.Rotate").end(&err)
	v := w.s.faults()
	checkSecret(&v, r.Secret)
	if r.Grace < 0 || r.Grace > MaxGrace {
		v.add("/gracePeriodSeconds", "out_of_range", "must be between 0 and %d seconds", int(MaxGrace.Seconds()))
	}
	if err := v.err(); err != nil {
		return Webhook{}, fmt.Errorf("formsvc: rotate: %w", err)
	}
	if r.Secret == "" {
		r.Secret = newSecret()
	}
	hook, err := w.s.store.UpdateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		hook.Previous, hook.PreviousUntil = "", time.Time{}
		if r.Grace > 0 && hook.Secret != "" {
			hook.Previous, hook.PreviousUntil = hook.Secret, w.s.now().Add(r.Grace)
		}
		hook.Secret = r.Secret
		w.changed(hook)
		return Change{
			Audit:       w.audit(hook, AuditWebhookRotated),
			Idempotency: w.s.record(new(w.current(*hook))),
		}, nil
	})
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: rotate: %w", err)
	}
	return w.current(hook), nil
}

// SetDisabled disables a webhook or enables it again. While it is disabled,
// events make no deliveries for it and what waits for it rests; what is
// redelivered by hand goes out. It fails with [ErrNotFound].
func (w Webhooks) SetDisabled(ctx context.Context, key WebhookKey, disabled bool) (_ Webhook, err error) {
	defer w.s.span(&ctx, "Webhooks.SetDisabled").end(&err)
	hook, err := w.s.store.UpdateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		if hook.Disabled == disabled {
			return Change{}, nil
		}
		hook.Disabled = disabled
		w.changed(hook)
		return Change{Audit: w.audit(hook, AuditWebhookUpdated)}, nil
	})
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: webhook: %w", err)
	}
	return w.current(hook), nil
}

// Test sends a webhook an event that did not happen: shaped like the first of
// those it listens to, marked with "test": true, on the way that every delivery
// takes, once, also while the webhook is disabled. It fails with [ErrNotFound].
func (w Webhooks) Test(ctx context.Context, key WebhookKey) (_ Delivery, err error) {
	defer w.s.span(&ctx, "Webhooks.Test").end(&err)
	hook, err := w.s.store.Webhook(ctx, key)
	if err != nil {
		return Delivery{}, fmt.Errorf("formsvc: test webhook: %w", err)
	}
	event, err := w.s.testEvent(ctx, &hook)
	if err != nil {
		return Delivery{}, fmt.Errorf("formsvc: test webhook: %w", err)
	}
	delivery, err := w.s.store.CreateTest(ctx, key, event, func(d *Delivery) (Change, error) {
		return Change{Audit: w.audit(&hook, AuditWebhookTested), Idempotency: w.s.record(d)}, nil
	})
	if err != nil {
		return Delivery{}, fmt.Errorf("formsvc: test webhook: %w", err)
	}
	return delivery, nil
}

// Get returns a webhook, or [ErrNotFound].
func (w Webhooks) Get(ctx context.Context, key WebhookKey) (_ Webhook, err error) {
	defer w.s.span(&ctx, "Webhooks.Get").end(&err)
	hook, err := w.s.store.Webhook(ctx, key)
	if err != nil {
		return Webhook{}, fmt.Errorf("formsvc: webhook: %w", err)
	}
	return w.current(hook), nil
}

// List returns the account's webhooks, oldest first.
func (w Webhooks) List(ctx context.Context, account ID) (_ []Webhook, err error) {
	defer w.s.span(&ctx, "Webhooks.List").end(&err)
	hooks, err := w.s.store.Webhooks(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("formsvc: webhooks: %w", err)
	}
	for i := range hooks {
		hooks[i] = w.current(hooks[i])
	}
	return hooks, nil
}

// Delete removes a webhook; deliveries still waiting for it are never sent,
// attempts under way are not cut off. It fails with [ErrNotFound] when the
// account has no such webhook.
func (w Webhooks) Delete(ctx context.Context, key WebhookKey) (err error) {
	defer w.s.span(&ctx, "Webhooks.Delete").end(&err)
	if err := w.s.store.DeleteWebhook(ctx, key, Change{Audit: w.s.audit(key.AccountID, AuditWebhookDeleted, key.ID, nil)}); err != nil {
		return fmt.Errorf("formsvc: delete webhook: %w", err)
	}
	return nil
}
