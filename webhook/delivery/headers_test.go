package delivery_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// While receivers switch secrets, the service's header uses the old secret, and the standard one
// has both.
func TestBothSecretsSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		rec := &recorder{next: func(*http.Request) (*http.Response, error) { return answer(500) }}
		e := endpoint("a")
		e.Secret, e.Previous = "new", "old"
		q.add("d1", e, "body")
		run(t, q, delivery.Options{Transport: rec})
		time.Sleep(2 * time.Minute)
		q.move("a", func(e *delivery.Endpoint) { e.Previous = "" })
		time.Sleep(time.Hour)
		calls := rec.seen()
		if len(calls) != 4 {
			t.Fatalf("%d requests", len(calls))
		}
		ids := make(map[string]bool)
		for i, c := range calls {
			own, standard := sign("new", "body"), signStandard("new", "event-d1", c.at, "body")
			if i < 2 {
				own = sign("old", "body")
				standard += " " + signStandard("old", "event-d1", c.at, "body")
			}
			h := c.header
			equal(t, h.Get("x-service-signature"), own, "attempt %d: x-service-signature %s", i+1)
			equal(t, h.Get("webhook-signature"), standard, "attempt %d: webhook-signature %s", i+1)
			equal(t, h.Get("webhook-timestamp"), fmt.Sprint(c.at.Unix()), "attempt %d: webhook-timestamp %s", i+1)
			ids[h.Get("webhook-id")] = true
		}
		if len(ids) != 1 || !ids["event-d1"] {
			t.Errorf("webhook-id %v, want the event's on every attempt", ids)
		}
	})
}

func TestCustomHeadersOfAnEndpoint(t *testing.T) {
	t.Parallel()
	own := map[string][]string{
		"Authorization": {"Bearer token"},
		"X-Tag":         {"one", "two"},
	}
	reserved := []string{
		"Host", "Content-Length", "Transfer-Encoding", "Content-Type", "content-encoding", "Connection", "Keep-Alive",
		"Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Upgrade", "Expect", "Accept-Encoding",
		"User-Agent", "Idempotency-Key", "idempotency-key", "x-service-signature", "X-SERVICE-EVENT", "x-service-delivery",
		"X-Service-Attempt", "x-service-new", "webhook-id", "Webhook-Timestamp", "WEBHOOK-SIGNATURE",
		"traceparent", "Tracestate",
	}
	e := endpoint("a")
	e.Headers = http.Header(own).Clone()
	for _, name := range reserved {
		e.Headers[name] = []string{"forged"}
	}
	q := newQueue()
	q.add("d1", e, "body")
	var host string
	rec := &recorder{next: func(r *http.Request) (*http.Response, error) {
		host = r.Host
		if r.ContentLength != 4 || len(r.TransferEncoding) != 0 {
			t.Errorf("length %d, coding %v", r.ContentLength, r.TransferEncoding)
		}
		return answer(200)
	}}
	if n, err := newEngine(t, q, delivery.Options{Transport: rec}).RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h := rec.seen()[0].header
	for name, want := range own {
		if got := h.Values(name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, values := range h {
		if strings.Contains(fmt.Sprint(values), "forged") {
			t.Errorf("%s: %q", name, values)
		}
	}
	if host != "a.example" || h.Get("x-service-signature") != sign("secret-a", "body") {
		t.Errorf("host %q, header %v", host, h)
	}
	equal(t, len(e.Headers), len(own)+len(reserved), "the endpoint's headers were changed: %v")
}

// A header that HTTP can't carry fails the attempts of the delivery, and nothing else.
func TestInvalidHeaderFailsTheDelivery(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Header{{"X-A": {"a\r\nX-Service-Attempt: 7"}}, {"a b": {"c"}}, {"": {"c"}}} {
		q := newQueue()
		e := endpoint("a")
		e.Headers = h
		e.URL = rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		q.add("d1", e, "body")
		n, err := newEngine(t, q, delivery.Options{}).RunOnce(t.Context())
		if n != 1 || err != nil || q.get("d1").attempts[0].Error != delivery.ClassTransport {
			t.Errorf("%q: %d, %v, %+v", h, n, err, q.get("d1").attempts)
		}
	}
}
