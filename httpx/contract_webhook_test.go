package httpx_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// checkDelivery checks a delivery against the section webhooks of the document.
func checkDelivery(tb testing.TB, header http.Header, body []byte) {
	tb.Helper()
	c, err := loadContract()
	if err != nil {
		tb.Error(err)
		return
	}
	event := header.Get("X-Service-Event")
	o := c.webhooks[event]
	if o == nil {
		tb.Errorf("contract: the event %q is not documented", event)
		return
	}
	schema := o.body[header.Get("Content-Type")]
	if schema == nil {
		tb.Errorf("contract: %s: the media type %q is not documented", event, header.Get("Content-Type"))
		return
	}
	if err := fitsEvent(schema, body); err != nil {
		tb.Errorf("contract: %s: %v: %.300s", event, err, body)
	}
	if v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body)); err == nil {
		o.sent.see(v)
	}
	for _, p := range o.parameters {
		values := header.Values(p.name)
		if p.in != "header" || len(values) != 1 {
			tb.Errorf("contract: %s: the header %s is there %d times", event, p.name, len(values))
			continue
		}
		if err := p.fits(values...); err != nil {
			tb.Errorf("contract: %s: the header %s: %v", event, p.name, err)
		}
	}
	for name := range header { // others belong to HTTP, or are the webhook's custom headers
		if (strings.HasPrefix(name, "X-Service-") || strings.HasPrefix(name, "Webhook-")) &&
			!slices.ContainsFunc(o.parameters, func(p *documented) bool { return strings.EqualFold(p.name, name) }) {
			tb.Errorf("contract: %s: the header %s is not documented", event, name)
		}
	}
	var e webhook.Event
	if err := json.Unmarshal(body, &e); err != nil || string(e.Type) != event {
		tb.Errorf("contract: %s: the body has the event %s, %v", event, e.Type, err)
	}
	coverage.see("event " + event)
	if e.Data.Truncated {
		coverage.see("event truncated")
	}
	if e.Test {
		coverage.see("event test")
	}
}

func fitsEvent(schema *jsonschema.Schema, body []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return fit(schema, v)
}

// The document has exactly the events that exist.
func TestOpenAPIWebhooks(t *testing.T) {
	c := theContract(t)
	for _, event := range webhook.KnownEventTypes() {
		if c.webhooks[string(event)] == nil {
			t.Errorf("%s is not documented", event)
		}
	}
	if len(c.webhooks) != len(webhook.KnownEventTypes()) {
		t.Errorf("%d events are documented, and there are %d", len(c.webhooks), len(webhook.KnownEventTypes()))
	}
}

// Every type of event, raised over the API and sent by the engine, matches the document, in the delivery and in the
// list of events.
func TestEveryDeliveryIsAsDocumented(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		engine := w.engine()
		r := newReceiver(t, slices.Repeat([]int{204}, 100)...)
		var events []string
		for _, event := range webhook.KnownEventTypes() {
			events = append(events, `"`+string(event)+`"`)
		}
		w.webhook(`{"url":"` + r.URL + `","events":[` + strings.Join(events, ",") + `]}`)
		campaign, response := w.pair()
		w.do("PATCH", response, `{"responses":{"color":{"value":["red"]}}}`).is(200, "")
		w.do("PATCH", response, `{"status":"validated"}`).is(200, "")
		w.do("PATCH", response, `{"status":"completed"}`).is(200, "")
		w.do("POST", response+"/files", "{}").is(201, "")
		w.do("POST", response+"/signatures", plainSignature).is(201, "")
		w.do("POST", campaign+"/responses", answers(`{"a":{"value":["`+strings.Repeat("x", formsvc.MaxPayload)+`"]}}`)).is(201, "")
		w.do("DELETE", response, "").is(204, "")
		for _, event := range events { // a test event has the first type of the webhook
			one := w.webhook(`{"url":"` + r.URL + `/one","events":[` + event + `]}`)
			w.do("POST", one+"/test", "").is(201, "")
		}
		for {
			n, err := engine.RunOnce(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		r.sawEverything(t)
		w.settle(9)
		for _, item := range w.feed("").Items {
			var e webhook.Event
			if err := json.Unmarshal(item, &e); err != nil {
				t.Fatal(err)
			}
			if err := fitsEvent(theContract(t).webhooks[string(e.Type)].body["application/json"], item); err != nil {
				t.Errorf("%s in the list of events: %v", e.Type, err)
			}
		}
	})
}

// sawEverything checks that all types of events arrived.
func (r *receiver) sawEverything(t *testing.T) {
	t.Helper()
	seen := map[webhook.EventType]bool{}
	var truncated, test bool
	for _, body := range r.bodies {
		e, err := webhook.ParseEvent([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		seen[e.Type] = true
		truncated, test = truncated || e.Data.Truncated, test || e.Test
	}
	if len(seen) != len(webhook.KnownEventTypes()) || !truncated || !test {
		t.Errorf("arrived: %v, truncated %t, test %t", seen, truncated, test)
	}
}
