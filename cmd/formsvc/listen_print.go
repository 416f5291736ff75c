package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/webhook"
)

// maxPrinted limits how many bytes of an otherwise unlimited text are shown.
const maxPrinted = 1024

// An arrival is a received request in the form in which it is printed.
type arrival struct {
	At           stamp           `json:"receivedAt"`
	Verified     bool            `json:"verified"`
	Error        *string         `json:"error"` // why it was rejected
	Event        string          `json:"event"`
	EventUUID    string          `json:"eventUuid"`
	DeliveryUUID string          `json:"deliveryUuid"`
	Attempt      int             `json:"attempt"`
	SecretIndex  int             `json:"secretIndex"`  // which of the secrets verified it, from 0
	Forwarded    *int            `json:"forwarded"`    // the status of the response
	ForwardError *string         `json:"forwardError"` // why there was no response
	DurationMS   *float64        `json:"durationMs"`   // of forwarding
	Body         json.RawMessage `json:"body"`         // null if it is not JSON or was not read

	text    []byte // the body as received
	answer  []byte // the beginning of the forwarded response, unless it is 2xx
	secrets int    // how many there are
	hint    string // a likely cause of Error
}

// verified records a delivery that was verified with one of this many secrets.
func (a *arrival) verified(d *webhook.Delivery, secrets int) {
	a.SecretIndex, a.secrets = d.SecretIndex, secrets
	a.Verified, a.Event, a.EventUUID, a.DeliveryUUID, a.Attempt = true, string(d.Event), d.EventID, d.ID, d.Attempt
	a.setBody(d.Body)
}

// refused records a request that didn't verify. Anyone may have sent it.
func (a *arrival) refused(r *http.Request, err error) {
	a.Error = orNull(err.Error())
	switch {
	case errors.Is(err, webhook.ErrMismatch):
		a.hint = "it was signed with a secret other than --secret, or the body was changed on its way"
	case errors.Is(err, webhook.ErrNoSignature):
		a.hint = "it does not come from the service, or a proxy removed the header"
	}
	a.Event, a.DeliveryUUID = r.Header.Get(webhook.EventHeader), r.Header.Get(webhook.DeliveryHeader)
	if errors.Is(err, webhook.ErrTooLarge) || errors.Is(err, webhook.ErrBody) {
		return
	}
	// VerifyRequest restores what it read; the rest has the same limit.
	body, err := io.ReadAll(io.LimitReader(r.Body, webhook.DefaultMaxBody+1))
	if err == nil && len(body) <= webhook.DefaultMaxBody {
		a.setBody(body)
	}
}

// forwarded records the response of the forwarding URL.
func (a *arrival) forwarded(answer *forwardAnswer, took time.Duration) {
	ms := milliseconds(took)
	a.Forwarded, a.DurationMS = &answer.status, &ms
	if answer.status/100 != 2 {
		a.answer = answer.body[:min(len(answer.body), maxPrinted)]
	}
}

// forwardFailed records why there is no response, without the URL, which may contain a password.
func (a *arrival) forwardFailed(err error) {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	a.ForwardError = orNull(err.Error())
}

func (a *arrival) setBody(body []byte) {
	a.text = body
	if utf8.Valid(body) && json.Valid(body) {
		a.Body = body
	}
}

// print prints one arrival without interleaving.
func (l *listener) print(a *arrival) {
	var b bytes.Buffer
	if l.json {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(a) // can't fail: its body is valid
	} else {
		a.write(&b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, printable(b.String()))
}

// write writes an arrival for people.
func (a *arrival) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "%s  %s  event %s  delivery %s  attempt %d\n", a.At, orDash(a.Event), orDash(a.EventUUID), orDash(a.DeliveryUUID), a.Attempt)
	switch {
	case a.Error != nil:
		fmt.Fprintf(b, "NOT VERIFIED: %s\n", *a.Error)
		if a.hint != "" {
			fmt.Fprintf(b, "(%s)\n", a.hint)
		}
	case a.ForwardError != nil:
		fmt.Fprintf(b, "%s, not forwarded: %s\n", a.how(), *a.ForwardError)
	case a.Forwarded != nil:
		fmt.Fprintf(b, "%s, forwarded: status %d in %.1fms\n", a.how(), *a.Forwarded, *a.DurationMS)
		if len(a.answer) > 0 {
			fmt.Fprintf(b, "response: %s\n", bytes.TrimSpace(a.answer))
		}
	default:
		b.WriteString(a.how() + "\n")
	}
	if a.Body != nil {
		_ = json.Indent(b, a.Body, "", "  ") // it is valid
	} else if n := min(len(a.text), maxPrinted); n > 0 {
		fmt.Fprintf(b, "not JSON: %q", a.text[:n])
	}
	b.WriteString("\n\n")
}

// how describes how a delivery was verified.
func (a *arrival) how() string {
	if a.secrets > 1 {
		return fmt.Sprintf("verified with secret %d of %d", a.SecretIndex+1, a.secrets)
	}
	return "verified"
}

// printable escapes characters that control a terminal or reverse its text. Within JSON the result means the same.
func printable(s string) string {
	control := func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if control(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
