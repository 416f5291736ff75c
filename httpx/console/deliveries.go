package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// Limits of a delivery's page. The whole body can be downloaded.
const (
	shownBody   = 32 << 10 // bytes of the request's body on the page
	shownPretty = 8 << 10  // bytes of a body that is shown with line breaks too
)

// Bytes of HTML for a delivery, without its headers and the layout: in all, and reserved for each part whatever comes
// before it. An attempt counts with the markup around it.
const (
	deliveryBytes = 130_000
	bodyBytes     = 60_000
	attemptBytes  = 3_000
	attemptMarkup = 600 // at most
)

type deliveryPage struct {
	Delivery formsvc.Delivery
	Webhook  formsvc.Webhook
	Attempts []attempt
	Earlier  int64            // attempts that aren't shown
	Headers  []formsvc.Header // of the request, as far as known
	Body     string           // the part that is shown
	Pretty   string           // all of it with line breaks, if it is short
	Cut      bool             // whether Body is only a part
	Size     int64            // of the whole body in bytes
	Pruned   bool             // whether the event has been pruned
	Gone     bool             // whether the response was deleted, so that it can't be sent again
}

type attempt struct {
	formsvc.Attempt
	What   string // the outcome
	Todo   string // what to do about it
	Answer string // the part that is shown
	Cut    bool   // whether Answer is only a part of what is stored
	Binary bool
}

// classTexts describes each class of failure.
var classTexts = map[string]string{ //nolint:gochecknoglobals // immutable
	delivery.ClassTimeout: "Timed out", delivery.ClassDNS: "The host name doesn't resolve", delivery.ClassConnect: "Can't connect: refused or unreachable",
	delivery.ClassTLS: "TLS failed or the certificate isn't trusted", delivery.ClassRefused: "The address isn't allowed: it's in a private or local network",
	delivery.ClassReset: "The connection broke before the reply was complete", delivery.ClassTransport: "The reply isn't HTTP",
	delivery.ClassStatus: "The status isn't 2xx", delivery.ClassRedirect: "Redirects aren't followed",
	delivery.ClassURL: "Not sent: the URL can't be used", delivery.ClassSecret: "Not sent: no secret to sign with",
	delivery.ClassPayload: "Not sent: the event has been deleted",
}

// failureText describes the result of an attempt.
func failureText(class string, status int) string {
	if status != 0 {
		return "Answered " + strconv.Itoa(status)
	}
	return cmp.Or(classTexts[class], class)
}

// advice says what the owner of a webhook can do about a failure; "" if nothing but the reply tells.
func advice(class string, status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "The receiver doesn't accept the request. Compare the secret and the custom headers with what it expects."
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return "The receiver has nothing at this URL. Edit the webhook's URL."
	case status >= 300 && status < 400:
		return "Edit the webhook's URL: enter the address that the receiver redirects to."
	case status == http.StatusRequestEntityTooLarge:
		return "The receiver's limit for bodies is too low: bodies have up to 1 MB."
	case status == http.StatusTooManyRequests:
		return "The receiver gets too many requests. Resend when it has caught up."
	case status >= 500:
		return "The receiver has a problem. Look at its log, then resend."
	}
	return map[string]string{
		delivery.ClassTimeout: "The receiver should reply 200 at once, and do its work afterwards.",
		delivery.ClassDNS:     "Check the host in the webhook's URL.", delivery.ClassConnect: "Check that the receiver runs, and the port in the webhook's URL.",
		delivery.ClassTLS:     "Check the receiver's certificate: its name, its expiry, and that its chain is complete.",
		delivery.ClassRefused: "The operator of this server can allow the address (--webhook-allow).", delivery.ClassSecret: "Rotate the webhook's secret.",
	}[class]
}

func (v *visit) deliveryKey() formsvc.DeliveryKey {
	return formsvc.DeliveryKey{AccountID: v.account(), ID: v.id("delivery")}
}

// delivery shows the request that was sent and the replies.
func (v *visit) delivery() error {
	d, err := v.svc.Deliveries.Get(v.ctx(), v.deliveryKey())
	if err != nil {
		return err
	}
	hook, err := v.svc.Webhooks.Get(v.ctx(), formsvc.WebhookKey{AccountID: v.account(), ID: d.WebhookID})
	if err != nil {
		return err
	}
	p := deliveryPage{Delivery: d, Webhook: hook}
	b := &budget{left: deliveryBytes}
	p.readAttempts(b)
	event, err := v.svc.Events.Get(v.ctx(), v.account(), d.EventID)
	switch {
	case errors.Is(err, formsvc.ErrNotFound):
		p.Pruned = true
	case err != nil:
		return err
	default:
		key := formsvc.ResponseKey{AccountID: v.account(), CampaignID: event.CampaignID, ID: event.ResponseID}
		if _, err := v.svc.Responses.Get(v.ctx(), key); errors.Is(err, formsvc.ErrNotFound) {
			p.Gone = !d.Test && d.Event != webhook.ResponseDeleted
		} else if err != nil {
			return err
		}
		b.kept = 0
		p.Size = int64(len(event.Payload))
		p.Body, _ = b.text(strings.ToValidUTF8(string(event.Payload[:min(len(event.Payload), shownBody)]), ""))
		p.Cut = len(p.Body) < len(event.Payload)
		if pretty := jsontext.Value(event.Payload); len(pretty) <= shownPretty && !p.Cut {
			_ = pretty.Indent(jsontext.WithIndent("  ")) // our own JSON
			if text, all := b.text(string(pretty)); all {
				p.Pretty = text
			}
		}
		p.Headers = requestHeaders(&hook, &d, event.Payload)
	}
	return v.show(http.StatusOK, "delivery", "Delivery", p)
}

// readAttempts chooses the attempts to show: the newest first, and of their replies the last ones get the most space.
func (p *deliveryPage) readAttempts(b *budget) {
	log := p.Delivery.Log // at most formsvc.KeptAttempts
	p.Earlier = int64(p.Delivery.Attempts - len(log))
	p.Attempts = make([]attempt, len(log))
	for i, a := range slices.Backward(log) {
		b.kept = bodyBytes + i*attemptBytes
		b.take(attemptMarkup) // reserved above
		row := newAttempt(a)
		answer, all := b.text(row.Answer)
		row.Answer, row.Cut = answer, !all
		p.Attempts[i] = row
	}
}

func newAttempt(a formsvc.Attempt) attempt {
	row := attempt{Attempt: a, What: failureText(a.Error, a.Status), Todo: advice(a.Error, a.Status)}
	text := a.Answer
	for range utf8.UTFMax - 1 { // long replies are stored cut, maybe within a character
		if !utf8.Valid(text) {
			text = text[:len(text)-1]
		}
	}
	if row.Binary = !utf8.Valid(text); !row.Binary {
		row.Answer = string(text)
	}
	return row
}

// requestHeaders returns the headers of the last attempt as far as they are known. These are the headers that identify
// and sign the body, with today's secrets, and the names of custom headers.
func requestHeaders(hook *formsvc.Webhook, d *formsvc.Delivery, body []byte) []formsvc.Header {
	list := []formsvc.Header{
		{Name: "Content-Type", Value: "application/json"},
		{Name: webhook.SignatureHeader, Value: webhook.Sign(cmp.Or(hook.Previous, hook.Secret), body)},
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

// deliveryBody sends the whole body of a request as a download.
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
	v.slot.Release()
	_, _ = v.w.Write(event.Payload) // on an error the browser has disconnected
	return nil
}

// redeliver sends a delivery again.
func (v *visit) redeliver() error {
	d, err := v.once().Deliveries.Redeliver(v.ctx(), v.deliveryKey())
	if errors.Is(err, formsvc.ErrConflict) {
		return &refusal{http.StatusConflict, "An attempt is in progress", "Wait until it ends, then resend if you still need to."}
	}
	if err != nil {
		return err
	}
	return v.redirect("/deliveries/"+string(d.ID), url.Values{"note": {"redelivered"}})
}

// redeliverSelected sends the selected failed deliveries again.
func (v *visit) redeliverSelected() error {
	query, err := v.eachSelected("delivery", func(id formsvc.ID) error {
		_, err := v.svc.Deliveries.Redeliver(v.ctx(), formsvc.DeliveryKey{AccountID: v.account(), ID: id})
		return err
	})
	if err != nil {
		return err
	}
	return v.redirect("/failures", query)
}

type failuresPage struct {
	Notices []failure
	Pager   pager
}

type failure struct {
	formsvc.Notice
	Webhook *formsvc.Webhook // nil: deleted since
	What    string
	Todo    string
}

// failures lists the notices of permanently failed deliveries.
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
	p := failuresPage{Pager: pagerOf(v, list, func(n *formsvc.Notice) formsvc.ID { return n.DeliveryID })}
	for _, n := range list.Items {
		p.Notices = append(p.Notices, failure{n, byID[n.WebhookID], failureText(n.Error, n.Status), advice(n.Error, n.Status)})
	}
	return v.show(http.StatusOK, "failures", "Failures", p)
}
