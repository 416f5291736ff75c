package delivery

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// request returns the request of an attempt at the time at.
func (e *Engine) request(ctx context.Context, j *job, number int, at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.endpoint.URL, bytes.NewReader(j.body))
	if err != nil || !usable(req.URL) {
		return nil, errURL
	}
	if j.missing {
		return nil, errPayload
	}
	if j.endpoint.Secret == "" {
		// Anyone could forge such a signature.
		return nil, errSecret
	}
	addHeaders(req.Header, j.endpoint.Headers)
	maps.Copy(req.Header, j.traced)
	e.setHeaders(req.Header, j, number)
	sign(req.Header, j, at)
	return req, nil
}

// setHeaders sets the engine's headers, except the signatures.
func (e *Engine) setHeaders(h http.Header, j *job, number int) {
	// As http.Header.Set, but with one allocation for all values, and with the
	// names in canonical form already.
	values := [...]string{"application/json", e.opts.UserAgent, j.claim.Event, j.claim.ID, strconv.Itoa(number)}
	h["Content-Type"] = values[0:1:1]
	h["User-Agent"] = values[1:2:2]
	h["X-Service-Event"] = values[2:3:3]
	h["X-Service-Delivery"] = values[3:4:4]
	h["X-Service-Attempt"] = values[4:5:5]
	// Receivers close idle connections at any time. net/http retries a request on such a
	// connection, but a POST only with this header.
	h["Idempotency-Key"] = values[3:4:4]
}

// sign sets the signatures. While receivers switch to a new secret, the service's own header, which
// has room for one signature, keeps using the old secret.
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

// addHeaders adds an endpoint's custom headers to a request, except reserved ones. It ignores the
// case of names.
func addHeaders(h, own http.Header) {
	for name, values := range own {
		if webhook.IsReservedHeader(name) {
			continue
		}
		for _, value := range values {
			h.Add(name, value)
		}
	}
}
