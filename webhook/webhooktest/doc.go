// Package webhooktest helps to test both ends of a webhook. [NewRequest] and [Header] create signed
// requests to test a receiver. [Receiver] is a recording receiver to test a sender. [Vectors] and
// [StandardVectors] are examples that every implementation of the signatures must agree with. It
// uses only the standard library and is meant for tests.
//
// # Vectors
//
// The examples are in the file vectors.json in this directory, for use from any language. A
// receiver is correct if it accepts exactly the examples whose want is "ok". The file has these
// members:
//
//   - format: 1. It changes if readers must change; examples may be added at any time.
//   - maxBody: the length of the longest accepted body, in bytes.
//   - tolerance: for standard, the largest difference between the time of sending and the
//     receiver's clock, in seconds.
//   - service: the examples of x-service-signature.
//   - standard: the examples of the headers of Standard Webhooks. Their x-service-signature is
//     always correct.
//
// and an example has these:
//
//   - name: what it shows; unique within service and within standard.
//   - secrets: the receiver's secrets, as text; several while a secret is being changed. The UTF-8
//     bytes of a secret are the key. For standard, if it starts with "whsec_" and the rest is
//     base64 of a key that isn't empty, the decoded bytes are the key.
//   - headers: by lowercase name, the values of all headers with that name, as the application sees
//     them. If an application sees only one value, it is all of them, joined with a comma and a
//     space.
//   - body: the raw body in base64 (RFC 4648, section 4), or
//   - fill: instead of body, {byte, count} for count bytes of that value.
//   - now: for standard, the time at the receiver, in seconds since 1970.
//   - want: "ok", or why the request is refused: "no_secret", "too_large", "no_signature",
//     "malformed_signature", "mismatch", "too_old" or "too_new". If several apply, it is the first
//     in this order. A receiver needn't distinguish them, and can ignore "too_large" if something
//     else limits bodies.
//
// Every HMAC was computed with OpenSSL, not with this module:
//
//	openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY < message
//
// OpenSSL doesn't accept an empty key. For the examples signed with an empty secret the key was one
// zero byte, which is the same HMAC key.
package webhooktest
