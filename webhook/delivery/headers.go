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

// newRequest returns the request of an attempt at the time at.
func newRequest(ctx context.Context, j *job, number int, at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.endpoint.URL, bytes.NewReader(j.body))
	if err != nil || !usable(req.URL) {
		return nil, unsent(ClassURL)
	}
	if j.missing {
		return nil, unsent(ClassPayload)
	}
	if j.endpoint.Secret == "" { // anyone could forge such a signature
		return nil, unsent(ClassSecret)
	}
	h := req.Header
	for name, values := range j.endpoint.Headers {
		if !webhook.IsReservedHeader(name) {
			for _, value := range values {
				h.Add(name, value)
			}
		}
	}
	maps.Copy(h, j.traced)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set(webhook.EventHeader, j.claim.Event)
	h.Set(webhook.DeliveryHeader, j.claim.ID)
	h.Set(webhook.AttemptHeader, strconv.Itoa(number))
	// Receivers close idle connections at any time. net/http retries a request on such a
	// connection, but a POST only with this header.
	h.Set("Idempotency-Key", j.claim.ID)
	secrets := []string{j.endpoint.Secret}
	if j.endpoint.Previous != "" {
		secrets = append(secrets, j.endpoint.Previous)
	}
	webhook.SetSignatures(h, j.claim.EventID, at, j.body, secrets...)
	return req, nil
}

func usable(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}
