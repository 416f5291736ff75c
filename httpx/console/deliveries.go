package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// shownPretty is how many bytes a body may have that is shown with line breaks too.
const shownPretty = 8 << 10

type deliveryPage struct {
	Delivery formsvc.Delivery
	Webhook  formsvc.Webhook
	Headers  []formsvc.Header // of the request, as far as known
	Body     string
	Pretty   string // the same with line breaks, if it is short
	Pruned   bool   // whether the event has been pruned
	Gone     bool   // whether the response was deleted, so that it can't be sent again
}

// failureText describes the result of an attempt.
func (h *Handler) failureText(class string, status int) string {
	if status != 0 {
		return "Answered " + strconv.Itoa(status)
	}
	return cmp.Or(h.texts["failures"][class], class)
}

// advice says what the owner of a webhook can do about a failure; "" if nothing but the reply tells.
func (h *Handler) advice(class string, status int) string {
	texts := h.texts["advice"]
	if class == delivery.ClassMail {
		return texts[class]
	}
	return cmp.Or(texts[strconv.Itoa(status)], texts[strconv.Itoa(status/100)+"xx"], texts[class])
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
	event, err := v.svc.Events.Get(v.ctx(), v.account(), d.EventID)
	switch {
	case errors.Is(err, formsvc.ErrNotFound):
		p.Pruned = true
	case err != nil:
		return err
	default:
		key := formsvc.ResponseKey{AccountID: v.account(), CampaignID: event.CampaignID, ID: event.ResponseID}
		if _, err := v.svc.Responses.Get(v.ctx(), key); errors.Is(err, formsvc.ErrNotFound) {
			p.Gone = !d.Test && !slices.Contains(formsvc.WithoutAnswers(), d.Event)
		} else if err != nil {
			return err
		}
		p.Body = string(event.Payload)
		if pretty := jsontext.Value(p.Body); len(pretty) <= shownPretty {
			_ = pretty.Indent(jsontext.WithIndent("  ")) // our own JSON
			p.Pretty = string(pretty)
		}
		p.Headers = requestHeaders(&hook, &d, event.Payload)
	}
	return v.show(http.StatusOK, "delivery", "Delivery", p)
}

// replyText returns a reply, or "" if it isn't text.
func replyText(reply []byte) string {
	text := strings.ToValidUTF8(string(reply), "")
	if len(text)+utf8.UTFMax <= len(reply) { // long replies are stored cut, maybe within a character
		return ""
	}
	return text
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
	d, _, err := once(v, func(svc *formsvc.Service) (formsvc.Delivery, error) {
		return svc.Deliveries.Redeliver(v.ctx(), v.deliveryKey())
	})
	if errors.Is(err, formsvc.ErrConflict) {
		return &refusal{http.StatusConflict, "An attempt is in progress", "Wait until it ends, then resend if you still need to."}
	}
	return v.backOr(err, "mail-again", "/deliveries/"+string(d.ID), "redelivered")
}

// redeliverSelected sends the selected failed deliveries again.
func (v *visit) redeliverSelected() error {
	query, err := v.each(v.r.PostForm["delivery"], pageSize, func(id formsvc.ID) error {
		_, err := v.svc.Deliveries.Redeliver(v.ctx(), formsvc.DeliveryKey{AccountID: v.account(), ID: id})
		return err
	})
	return v.redirect(err, "/failures", query)
}

type failuresPage struct {
	Notices []failure
	Pager   pager
}

type failure struct {
	formsvc.Notice
	Webhook *formsvc.Webhook // nil: deleted since
}

// failures lists the notices of permanently failed deliveries.
func (v *visit) failures() error {
	list, err := v.svc.Notices.List(v.ctx(), formsvc.NoticeQuery{AccountID: v.account(), Page: v.page(), NoTotal: true})
	hooks, errHooks := v.svc.Webhooks.List(v.ctx(), v.account())
	if err = cmp.Or(err, errHooks); err != nil {
		return err
	}
	byID := map[formsvc.ID]*formsvc.Webhook{}
	for i := range hooks {
		byID[hooks[i].ID] = &hooks[i]
	}
	own := formsvc.WebhookKey{AccountID: v.account(), ID: v.account()} // sends confirmations, and isn't listed
	if hook, err := v.svc.Webhooks.Get(v.ctx(), own); err == nil {
		byID[hook.ID] = &hook
	} else if !errors.Is(err, formsvc.ErrNotFound) {
		return err
	}
	p := failuresPage{Pager: pagerOf(v, list, func(n *formsvc.Notice) formsvc.ID { return n.DeliveryID })}
	for _, n := range list.Items {
		p.Notices = append(p.Notices, failure{n, byID[n.WebhookID]})
	}
	return v.show(http.StatusOK, "failures", "Failures", p)
}
