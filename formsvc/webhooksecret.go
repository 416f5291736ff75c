package formsvc

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"
)

// Limits of a secret in bytes. HMAC-SHA-256 gains nothing from more than 64.
const (
	strongSecret = 16
	maxSecret    = 256
)

// SecretWarning returns a warning to show to people if a webhook's secret has fewer than 16 bytes, and "" otherwise. Such
// secrets are accepted, because existing receivers may have one.
func SecretWarning(secret string) string {
	if secret == "" || len(secret) >= strongSecret {
		return ""
	}
	return fmt.Sprintf("The secret is weak: with fewer than %d bytes it can be brute-forced from a single signed request.", strongSecret)
}

// checkSecret notes the faults of a secret; "" is allowed.
func checkSecret(v *ValidationError, secret string) {
	if len(secret) > maxSecret {
		v.add("/secret", "out_of_range", "must have between 1 and %d bytes", maxSecret)
	}
	v.checkLine("/secret", secret, maxSecret)
}

// newSecret returns 32 random bytes in the form that Standard Webhooks recommends.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

// Rotation says how [Webhooks.Rotate] changes a secret.
type Rotation struct {
	// Secret is the new secret, 1 to 256 bytes, see [SecretWarning]; "" generates one.
	Secret string
	// Grace is how long the old secret still signs, 0 to MaxGrace. 0 means that it stops at once;
	// use it if the secret leaked.
	Grace time.Duration
}

// Rotate gives a webhook a new secret. During the grace period x-service-signature is signed with
// the old secret, and webhook-signature has a signature of each, so that receivers can switch at
// any time. Afterwards only the new secret signs. Rotating again during the grace period drops the
// oldest of the three. It fails with [ErrNotFound] and *[ValidationError].
func (w Webhooks) Rotate(ctx context.Context, key WebhookKey, r Rotation) (_ Webhook, err error) {
	defer wrap(&err, "rotate")
	return once(ctx, w.s, key.AccountID, func() (Webhook, error) { return w.rotate(ctx, key, r) })
}

func (w Webhooks) rotate(ctx context.Context, key WebhookKey, r Rotation) (Webhook, error) {
	v := w.s.faults()
	checkSecret(&v, r.Secret)
	if r.Grace < 0 || r.Grace > MaxGrace {
		v.add("/gracePeriodSeconds", "out_of_range", "must be between 0 and %d seconds", int(MaxGrace.Seconds()))
	}
	if err := v.err(); err != nil {
		return Webhook{}, err
	}
	if r.Secret == "" {
		r.Secret = newSecret()
	}
	hook, err := w.s.updateWebhook(ctx, key, func(hook *Webhook) (Change, error) {
		if hook.Address() != "" {
			return Change{}, invalid("/url", "not_allowed", "mail isn't signed: there is no secret to change")
		}
		hook.Previous, hook.PreviousUntil = "", time.Time{}
		if r.Grace > 0 && hook.Secret != "" {
			hook.Previous, hook.PreviousUntil = hook.Secret, w.s.now().Add(r.Grace)
		}
		hook.Secret = r.Secret
		change := w.changed(hook, AuditWebhookRotated)
		change.Idempotency = record(w.s, key.AccountID, "", new(w.current(*hook)))
		return change, nil
	})
	return w.current(hook), err
}
