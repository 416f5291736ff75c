package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// The headers of a webhook request. Header names are case-insensitive, also for
// [net/http.Header.Get].
const (
	// SignatureHeader carries the signature of the body (see [Sign]). The
	// service's documentation requires it, under Authentication.
	SignatureHeader = "x-service-signature"
	// EventHeader carries the event's type. It isn't signed: use it only for routing and logs. The
	// signed type is [Delivery.Event].
	EventHeader = "x-service-event"
	// DeliveryHeader carries the delivery's identifier, the same on every
	// attempt. It is not signed.
	DeliveryHeader = "x-service-delivery"
	// AttemptHeader carries the number of the attempt in decimal digits, from
	// 1 for the first. It is not signed.
	AttemptHeader = "x-service-attempt"
)

// Sign returns the signature of body: its HMAC-SHA-256 keyed with secret, as 64 lowercase
// hexadecimal digits. The secret's bytes are the key: nothing is trimmed or decoded. body is the
// raw request body, which may be empty.
//
// Sign accepts an empty secret; [NewVerifier] refuses it. Senders sign whole requests with
// [SetSignatures].
func Sign(secret string, body []byte) string {
	return hex.EncodeToString(sum([]byte(secret), body))
}

// sum returns the 32 bytes of the HMAC-SHA-256 of the concatenated parts.
func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
