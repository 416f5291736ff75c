package settings

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Bounds of what a page shows of a delivery. All of a body can be downloaded, and the
// API has every attempt.
const (
	shownBody     = 32 << 10 // bytes of the request's body
	shownAttempts = 10
)

// Bytes of HTML that a delivery has: in all, but for its headers and what any page has,
// and for certain, however much comes before. An attempt counts with what is around it.
const (
	deliveryBytes = 130_000
	bodyBytes     = 60_000
	attemptBytes  = 3_000
	attemptMarkup = 600 // at most
)

type deliveryPage struct {
	Delivery formsvc.Delivery
	Webhook  formsvc.Webhook
	Host     string
	Attempts []attempt
	Earlier  int64            // attempts that are not shown
	Headers  []formsvc.Header // of the request
	Body     string           // what is shown of it
	Cut      bool             // whether that is not all
	Size     int64            // of the whole
	Pruned   bool             // whether the event is gone
	Open     bool             // whether an attempt is still to come
}

type attempt struct {
	formsvc.Attempt
	What   string // what came of it
	Answer string // what is shown of it
	Cut    bool   // whether that is not all of what is kept
	Binary bool
}

// classTexts say what each class of failure means.
var classTexts = map[string]string{ //nolint:gochecknoglobals // immutable
	delivery.ClassTimeout: "The answer took too long", delivery.ClassDNS: "The host has no address", delivery.ClassConnect: "No connection: refused or unreachable",
	delivery.ClassTLS: "No trusted TLS connection", delivery.ClassRefused: "The address is not allowed: it is in a private or local network",
	delivery.ClassReset: "The connection broke before the answer ended", delivery.ClassTransport: "The answer was no HTTP",
	delivery.ClassStatus: "The answer was not 2xx", delivery.ClassRedirect: "The answer was a redirect, which is not followed",
	delivery.ClassURL: "Not sent: the URL can't be used", delivery.ClassSecret: "Not sent: there is no secret to sign with",
	delivery.ClassPayload: "Not sent: the event is gone",
}

// failureText says what a failure was.
func failureText(class string, status int) string {
	if status != 0 {
		return "Answered " + strconv.Itoa(status)
	}
	if text := classTexts[class]; text != "" {
		return text
	}
	return class
}

func (v *visit) deliveryKey() formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: v.account(), ID: v.id("delivery")}
}

// delivery shows what was sent, and what came back.
func (v *visit) delivery() error {
	d, err := v.svc.Deliveries.Get(v.ctx(), v.deliveryKey())
	if err != nil {
		return err
	}
	hook, err := v.svc.Webhooks.Get(v.ctx(), formsvc.WebhookKey{AccountID: v.account(), ID: d.WebhookID})
	if err != nil {
		return err
	}
	p := deliveryPage{Delivery: d, Webhook: hook, Host: host(hook.URL), Open: d.State == formsvc.DeliveryPending}
	b := &budget{left: deliveryBytes}
	p.readAttempts(b)
	event, err := v.svc.Events.Get(v.ctx(), v.account(), d.EventID)
	switch {
	case errors.Is(err, formsvc.ErrNotFound):
		p.Pruned = true
	case err != nil:
		return err
	default:
		b.kept = 0
		p.Size = int64(len(event.Payload))
		p.Body, _ = b.text(whole(event.Payload, shownBody))
		p.Cut = len(p.Body) < len(event.Payload)
		p.Headers = requestHeaders(&hook, &d, event.Payload)
	}
	return v.show(http.StatusOK, "delivery", "Delivery", p)
}

// readAttempts chooses the attempts that are shown: the newest, of whose answers the
// last ones have the most room.
func (p *deliveryPage) readAttempts(b *budget) {
	first := max(len(p.Delivery.Log)-shownAttempts, 0)
	p.Earlier = int64(first)
	log := p.Delivery.Log[first:]
	p.Attempts = make([]attempt, len(log))
	for i, a := range slices.Backward(log) {
		b.kept = bodyBytes + i*attemptBytes
		b.take(attemptMarkup) // which was kept
		row := newAttempt(a)
		answer, all := b.text(row.Answer)
		row.Answer, row.Cut = answer, !all
		p.Attempts[i] = row
	}
}

func newAttempt(a formsvc.Attempt) attempt {
	row := attempt{Attempt: a, What: "Answered " + strconv.Itoa(a.Status)}
	if a.Error != "" {
		row.What = failureText(a.Error, a.Status)
	}
	text := unbroken(a.Answer)
	if row.Binary = !utf8.Valid(text); !row.Binary {
		row.Answer = string(text)
	}
	return row
}

// unbroken returns an answer without the first bytes of a character that are its last:
// of a longer answer only so many bytes are kept.
func unbroken(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// whole cuts a text to so many bytes, but not within a character.
func whole(b []byte, most int) string {
	if len(b) <= most {
		return string(b)
	}
	for most > 0 && !utf8.RuneStart(b[most]) {
		most--
	}
	return string(b[:most])
}

// requestHeaders are those of the last attempt that can be known: the ones that name
// and sign the body, by the secrets of today, and the names of the webhook's own.
func requestHeaders(hook *formsvc.Webhook, d *formsvc.Delivery, body []byte) []formsvc.Header {
	secret := hook.Secret
	if hook.Previous != "" {
		secret = hook.Previous
	}
	list := []formsvc.Header{
		{Name: "Content-Type", Value: "application/json"},
		{Name: webhook.SignatureHeader, Value: webhook.Sign([]byte(secret), body)},
		{Name: webhook.EventHeader, Value: string(d.Event)},
		{Name: webhook.DeliveryHeader, Value: string(d.ID)},
		{Name: webhook.StandardIDHeader, Value: string(d.EventID)},
	}
	if n := len(d.Log); n > 0 {
		list = append(list, formsvc.Header{Name: webhook.AttemptHeader, Value: strconv.Itoa(d.Log[n-1].Number)},
			formsvc.Header{Name: webhook.StandardTimestampHeader, Value: strconv.FormatInt(d.Log[n-1].StartedAt.Unix(), 10)})
	}
	for _, own := range hook.Headers {
		list = append(list, formsvc.Header{Name: own.Name, Value: "(not shown)"})
	}
	return list
}

// deliveryBody is the whole body of a request, to keep.
func (v *visit) deliveryBody() error {
	d, err := v.svc.Deliveries.Get(v.ctx(), v.deliveryKey())
	if err != nil {
		return err
	}
	event, err := v.svc.Events.Get(v.ctx(), v.account(), d.EventID)
	if err != nil {
		return err
	}
	header := v.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Disposition", `attachment; filename="`+string(d.ID)+`.json"`)
	header.Set("Content-Length", strconv.Itoa(len(event.Payload)))
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(event.Payload) // an error means that the browser is gone
	}
	return nil
}

// redeliver sends a delivery again.
func (v *visit) redeliver() error {
	d, err := v.once().Deliveries.Redeliver(v.ctx(), v.deliveryKey())
	if errors.Is(err, formsvc.ErrConflict) {
		return &refusal{http.StatusConflict, "An attempt is under way", "Wait for its end, and then send it again if that is still needed."}
	}
	if err != nil {
		return err
	}
	return v.redirect("/deliveries/"+string(d.ID), url.Values{"note": {"redelivered"}})
}

type failuresPage struct {
	Notices []failure
	Pager   pager
	Hooks   map[formsvc.ID]formsvc.Webhook
}

type failure struct {
	formsvc.Notice
	Webhook *formsvc.Webhook // nil: deleted since
	What    string
}

// failures lists the notices of deliveries that failed for the last time.
func (v *visit) failures() error {
	list, err := v.svc.Notices.List(v.ctx(), formsvc.NoticeQuery{AccountID: v.account(), Page: v.page(), NoTotal: true})
	if err != nil {
		return err
	}
	hooks, err := v.svc.Webhooks.List(v.ctx(), v.account())
	if err != nil {
		return err
	}
	byID := map[formsvc.ID]*formsvc.Webhook{}
	for i := range hooks {
		byID[hooks[i].ID] = &hooks[i]
	}
	p := failuresPage{}
	for _, n := range list.Items {
		p.Notices = append(p.Notices, failure{n, byID[n.WebhookID], failureText(n.Error, n.Status)})
	}
	if n := len(list.Items); n > 0 {
		p.Pager = v.pager(list.More, list.Items[n-1].DeliveryID)
	}
	return v.show(http.StatusOK, "failures", "Failures", p)
}

// Took is how long the attempt took, for people.
func (a attempt) Took() string { return millis(a.Duration.Truncate(time.Millisecond)) }
