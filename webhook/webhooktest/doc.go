// Package webhooktest helps to test the two ends of a webhook: [NewRequest] and
// [Header] make signed requests for the tests of a receiver, [Receiver] is a
// recording receiver for the tests of a sender, and [Vectors] and
// [StandardVectors] are examples that every implementation of the signatures has
// to agree on. It uses only the standard library and is meant for tests.
//
// # Vectors
//
// The examples for x-service-signature are in the file vectors.json of this
// folder, for use from any language. Its members are:
//
//   - limit: the length of the longest accepted body, in bytes.
//   - vectors: the examples.
//
// and those of an example are:
//
//   - name: what it shows; unique.
//   - secret: the key, as text. Its UTF-8 bytes are the key.
//   - body: the raw body in base64 (RFC 4648, section 4), or
//   - fill: instead of body, {byte, count} for count bytes of that value.
//   - signatures: the values of all x-service-signature headers of the request,
//     as the application sees them.
//   - want: "ok", or why the request is refused: "no_secret", "too_large",
//     "no_signature", "malformed_signature" or "mismatch".
//
// Those for the headers of Standard Webhooks are in standard.json. Its members
// are:
//
//   - tolerance: how far the time of sending may be from the receiver's, in
//     seconds.
//   - vectors: the examples.
//
// and those of an example are:
//
//   - name, body: as above.
//   - secret: the secret, as text. Where it starts with "whsec_" and the rest is
//     base64 of a key that is not empty, the key is what that stands for.
//   - id, timestamp, signature: the values of all webhook-id, webhook-timestamp
//     and webhook-signature headers.
//   - now: the time at the receiver, in seconds since 1970.
//   - want: "ok", or why the request is refused: "no_signature",
//     "malformed_signature", "mismatch", "too_old" or "too_new". Where several
//     apply, the first in this order.
//
// Every HMAC in both was computed with OpenSSL, not with this module:
//
//	openssl dgst -sha256 -hmac "$secret" < body
//
// OpenSSL takes no empty key. For the example with an empty secret the key was
// one zero byte, which HMAC makes the same key. In standard.json the key is
// given by -mac HMAC -macopt hexkey:KEY.
package webhooktest
