package settings

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// shownBody is how many bytes of a request's body a page shows; all of it can be
// downloaded.
const shownBody = 32 << 10

type deliveryPage struct {
	Delivery formsvc.Delivery
	Webhook  formsvc.Webhook
	Host     string
	Attempts []attempt
	Headers  []formsvc.Header // of the request
	Body     string           // what is shown of it
	Size     int64            // of the whole
	Pruned   bool             // whether the event is gone
	Open     bool             // whether an attempt is still to come
}

type attempt struct {
	formsvc.Attempt
	What   string // what came of it
	Answer string
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
	for _, a := range d.Log {
		p.Attempts = append(p.Attempts, newAttempt(a))
	}
	event, err := v.svc.Events.Get(v.ctx(), v.account(), d.EventID)
	switch {
	case errors.Is(err, formsvc.ErrNotFound):
		p.Pruned = true
	case err != nil:
		return err
	default:
		p.Size, p.Body = int64(len(event.Payload)), whole(event.Payload, shownBody)
		p.Headers = requestHeaders(&hook, &d, event.Payload)
	}
	return v.show(http.StatusOK, "delivery", "Delivery", p)
}

func newAttempt(a formsvc.Attempt) attempt {
	row := attempt{Attempt: a, What: "Answered " + strconv.Itoa(a.Status), Binary: !utf8.Valid(a.Answer)}
	if a.Error != "" {
		row.What = failureText(a.Error, a.Status)
	}
	if !row.Binary {
		row.Answer = string(a.Answer)
	}
	return row
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
