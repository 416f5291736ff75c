package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// The headers of a webhook request. HTTP does not tell upper from lower case
// in header names, and [net/http.Header.Get] finds them in either.
const (
	// SignatureHeader carries the signature of the body (see [Sign]). The
	// service's documentation requires it, under Authentication.
	SignatureHeader = "x-service-signature"
	// EventHeader carries the event's type. It is not signed: a hint for
	// routing and logs. The signed one is [Delivery.Event].
	EventHeader = "x-service-event"
	// DeliveryHeader carries the delivery's identifier, the same on every
	// attempt. It is not signed.
	DeliveryHeader = "x-service-delivery"
	// AttemptHeader carries the number of the attempt in decimal digits, from
	// 1 for the first. It is not signed.
	AttemptHeader = "x-service-attempt"
)

// Sign returns the signature of body: its HMAC-SHA-256 keyed with secret, as 64
// lowercase hexadecimal digits. The secret's bytes are the key as they are:
// nothing is trimmed and nothing decoded, whatever they look like. body is the
// raw request body, of any length, also none.
//
// Sign does not refuse an empty secret, [NewVerifier] does. It keeps neither
// argument and is safe for concurrent use.
func Sign(secret, body []byte) string {
	return hex.EncodeToString(sum(secret, body))
}

// sum returns the 32 bytes of the HMAC-SHA-256 of the parts, one after the other.
func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
