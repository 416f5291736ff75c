package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/webhook"
)

// An arrival is a request that a listener got, as it is printed.
type arrival struct {
	At           stamp           `json:"receivedAt"`
	Verified     bool            `json:"verified"`
	Error        *string         `json:"error"` // why it was refused
	Event        string          `json:"event"`
	EventUUID    string          `json:"eventUuid"`
	DeliveryUUID string          `json:"deliveryUuid"`
	Attempt      int             `json:"attempt"`
	Forwarded    *int            `json:"forwarded"`    // the status of the answer
	ForwardError *string         `json:"forwardError"` // why there was none
	Body         json.RawMessage `json:"body"`         // null if it is not JSON or was not read

	text []byte // the body as it came
}

// verified notes what a delivery says.
func (a *arrival) verified(d *webhook.Delivery) {
	a.Verified, a.Event, a.EventUUID, a.DeliveryUUID, a.Attempt = true, string(d.Event), d.EventID, d.ID, d.Attempt
	a.setBody(d.Body)
}

// refused notes what a request says that did not verify. Anybody may have sent
// it.
func (a *arrival) refused(r *http.Request, err error) {
	a.Error = orNull(err.Error())
	a.Event, a.DeliveryUUID = r.Header.Get(webhook.EventHeader), r.Header.Get(webhook.DeliveryHeader)
	if errors.Is(err, webhook.ErrTooLarge) || errors.Is(err, webhook.ErrBody) {
		return
	}
	// What was read already is there again; what was not is bounded like it.
	body, err := io.ReadAll(io.LimitReader(r.Body, webhook.DefaultMaxBody+1))
	if err == nil && len(body) <= webhook.DefaultMaxBody {
		a.setBody(body)
	}
}

func (a *arrival) setBody(body []byte) {
	a.text = body
	if utf8.Valid(body) && json.Valid(body) {
		a.Body = body
	}
}

// print prints one arrival, whole.
func (l *listener) print(a *arrival) {
	var b bytes.Buffer
	if l.json {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(a) // its body is valid, so there is nothing that could fail
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
	case a.ForwardError != nil:
		fmt.Fprintf(b, "verified, not forwarded: %s\n", *a.ForwardError)
	case a.Forwarded != nil:
		fmt.Fprintf(b, "verified, forwarded and answered with %d\n", *a.Forwarded)
	default:
		b.WriteString("verified\n")
	}
	if a.Body != nil {
		_ = json.Indent(b, a.Body, "", "  ") // it is valid
	} else if n := min(len(a.text), 1024); n > 0 {
		fmt.Fprintf(b, "not JSON: %q", a.text[:n])
	}
	b.WriteString("\n\n")
}

// printable escapes what would control a terminal or turn its text around.
// Within JSON the result means the same.
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
