package delivery

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// request returns the request of an attempt that is made at the time at.
func (e *Engine) request(ctx context.Context, j *job, number int, at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.endpoint.URL, bytes.NewReader(j.body))
	if err != nil || !usable(req.URL) {
		return nil, errURL
	}
	if j.missing {
		return nil, errPayload
	}
	if j.endpoint.Secret == "" {
		// Anybody could make that signature.
		return nil, errSecret
	}
	addHeaders(req.Header, j.endpoint.Headers)
	maps.Copy(req.Header, j.traced)
	e.setHeaders(req.Header, j, number)
	sign(req.Header, j, at)
	return req, nil
}

// setHeaders sets the engine's own headers but for the signatures.
func (e *Engine) setHeaders(h http.Header, j *job, number int) {
	// As http.Header.Set, but with one allocation for all values, and with the
	// names in canonical form already.
	values := [...]string{"application/json", e.opts.UserAgent, j.claim.Event, j.claim.ID, strconv.Itoa(number)}
	h["Content-Type"] = values[0:1:1]
	h["User-Agent"] = values[1:2:2]
	h["X-Service-Event"] = values[2:3:3]
	h["X-Service-Delivery"] = values[3:4:4]
	h["X-Service-Attempt"] = values[4:5:5]
	// Receivers close idle connections when they like. net/http sends a request
	// again that met such a connection, but a POST only with this header.
	h["Idempotency-Key"] = values[3:4:4]
}

// sign sets the signatures. While receivers change over to a new secret, the
// service's own header, which has room for one, goes on with the old one.
func sign(h http.Header, j *job, at time.Time) {
	secret := []byte(j.endpoint.Secret)
	if j.endpoint.Previous == "" {
		h["X-Service-Signature"] = []string{webhook.Sign(secret, j.body)}
		webhook.SetStandard(h, j.claim.EventID, at, j.body, secret)
		return
	}
	previous := []byte(j.endpoint.Previous)
	h["X-Service-Signature"] = []string{webhook.Sign(previous, j.body)}
	webhook.SetStandard(h, j.claim.EventID, at, j.body, secret, previous)
}

func usable(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// addHeaders adds an endpoint's own headers to those of a request, but for those
// that are not its business. Names count in any spelling.
func addHeaders(h, own http.Header) {
	for name, values := range own {
		if isReserved(http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, value := range values {
			h.Add(name, value)
		}
	}
}

// isReserved reports whether a header is the engine's or its tracer's, says how the
// message is framed or coded, or belongs to the connection (RFC 9110, section 7.6.1).
// The name is in canonical form.
func isReserved(name string) bool {
	switch name {
	case "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
		"Idempotency-Key", "Keep-Alive", "Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Service-")
}
