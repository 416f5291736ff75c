package webhooktest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// NewRequest returns a server request that delivers body to a webhook with that secret: a POST of /
// with the headers of [Header]. If a router needs another path, set URL.Path. To send it over a
// network, use [http.NewRequest] with Header instead.
func NewRequest(secret string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header = Header(secret, body)
	return r
}

// Header returns the headers of a first attempt to deliver body, signed with secret. They are the
// signature, the content type, the event's type if body is an event, and the delivery's identifier
// and attempt. The headers of Standard Webhooks have the current time and the event's identifier.
// The delivery's identifier is derived from the body, so the same body is the same delivery; it
// also replaces the event's identifier if there is none. The caller may change the headers;
// [webhook.SetSignatures] sets another time of sending.
func Header(secret string, body []byte) http.Header {
	h, id := http.Header{}, deliveryID(body)
	h.Set("Content-Type", "application/json")
	h.Set(webhook.DeliveryHeader, id)
	h.Set(webhook.AttemptHeader, "1")
	if e, err := webhook.ParseEvent(body); err == nil {
		h.Set(webhook.EventHeader, string(e.Type))
		if e.ID != "" {
			id = e.ID
		}
	}
	webhook.SetSignatures(h, id, time.Now(), body, secret)
	return h
}

// deliveryID returns a UUID of version 8 (RFC 9562, section 5.8) derived from body.
func deliveryID(body []byte) string {
	hash := sha256.Sum256(body)
	hash[6] = hash[6]&0x0f | 0x80
	hash[8] = hash[8]&0x3f | 0x80
	s := hex.EncodeToString(hash[:16])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
