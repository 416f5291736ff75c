package httpx

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// appendWebhook appends the webhook as clients get it. It has every field that clients can set, so that they can change
// a webhook that they read and send it back. The secret is missing ([reply] shows it once), and the values of headers
// are null, which keeps them when sent back.
func appendWebhook(b []byte, w *formsvc.Webhook) []byte {
	b = append(b, `{"uuid":"`...)
	b = append(b, w.ID...)
	b = append(b, `","url":`...)
	b = appendString(b, w.URL)
	b = append(b, `,"events":[`...)
	for i, event := range w.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(event))
	}
	b = append(b, `],"campaignUuid":`...)
	b = appendOptional(b, string(w.CampaignID))
	b = append(b, `,"disabled":`...)
	b = strconv.AppendBool(b, w.Disabled)
	b = append(b, `,"headers":{`...)
	for i, header := range w.Headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, header.Name)
		b = append(b, `:null`...)
	}
	b = append(b, `},"previousSecretExpiresAt":`...)
	b = appendTime(b, w.PreviousUntil)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, w.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, w.UpdatedAt)
	return append(b, '}')
}

// appendWarnings adds warnings about the secret of the request to a webhook. Without a secret there are none.
func appendWarnings(b []byte, secret string) []byte {
	warning := formsvc.SecretWarning(secret)
	if warning == "" {
		return b
	}
	b = append(b[:len(b)-1], `,"warnings":[`...)
	return append(appendString(b, warning), ']', '}')
}

// appendOptional appends a string, or null for "".
func appendOptional(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// Limits of a receiver's reply as shown, in bytes: in a list, and for a single delivery, which shows all that is
// stored.
const (
	shortAnswer = 256
	wholeAnswer = 4 << 10
)

// appendDelivery appends the delivery as clients get it, with at most limit bytes of each of the receiver's replies.
func appendDelivery(b []byte, d *formsvc.Delivery, limit int) []byte {
	b = append(b, `{"uuid":"`...)
	b = append(b, d.ID...)
	b = append(b, `","webhookUuid":"`...)
	b = append(b, d.WebhookID...)
	b = append(b, `","eventUuid":"`...)
	b = append(b, d.EventID...)
	b = append(b, `","event":`...)
	b = appendString(b, string(d.Event))
	if d.Test {
		b = append(b, `,"test":true`...)
	}
	b = append(b, `,"state":`...)
	b = appendString(b, string(d.State))
	b = append(b, `,"attemptCount":`...)
	b = strconv.AppendInt(b, int64(d.Attempts), 10)
	b = append(b, `,"sendingSince":`...)
	b = appendTime(b, d.SendingSince)
	b = append(b, `,"nextAttemptAt":`...)
	if d.State == formsvc.DeliveryPending && d.SendingSince.IsZero() {
		b = appendTime(b, d.DueAt)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, d.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, d.UpdatedAt)
	b = append(b, `,"attempts":[`...)
	for i := range d.Log {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAttempt(b, &d.Log[i], limit)
	}
	return append(b, ']', '}')
}

func appendAttempt(b []byte, a *formsvc.Attempt, limit int) []byte {
	b = append(b, `{"number":`...)
	b = strconv.AppendInt(b, int64(a.Number), 10)
	b = append(b, `,"startedAt":`...)
	b = appendTime(b, a.StartedAt)
	b = append(b, `,"durationMs":`...)
	millis := float64(a.Duration.Microseconds()) / float64(time.Millisecond/time.Microsecond)
	b = strconv.AppendFloat(b, millis, 'f', -1, 64)
	b = append(b, `,"status":`...)
	if a.Status == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(a.Status), 10)
	}
	b = append(b, `,"error":`...)
	b = appendOptional(b, a.Error)
	b = append(b, `,"answer":`...)
	b = appendString(b, string(cut(a.Answer, limit)))
	return append(b, '}')
}

// cut returns at most limit bytes of the text, without splitting a character.
func cut(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	for at := limit; at > limit-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return text[:at]
		}
	}
	return text[:limit] // not UTF-8
}
