// Package webhooktest helps to test the two ends of a webhook: [NewRequest] and
// [Header] make signed requests for the tests of a receiver, [Receiver] is a
// recording receiver for the tests of a sender, and [Vectors] and
// [StandardVectors] are examples that every implementation of the signatures has
// to agree on. It uses only the standard library and is meant for tests.
//
// # Vectors
//
// The examples are in the file vectors.json of this folder, for use from any
// language. A receiver is right when it accepts those that want "ok" and no other.
// The file's members are:
//
//   - format: 1. It changes when a reader has to; examples may be added any time.
//   - maxBody: the length of the longest accepted body, in bytes.
//   - tolerance: for standard, how far the time of sending may be from the
//     receiver's, in seconds.
//   - service: the examples of x-service-signature.
//   - standard: the examples of the headers of Standard Webhooks. Their
//     x-service-signature is right in any case.
//
// and those of an example are:
//
//   - name: what it shows; unique within service and within standard.
//   - secrets: the receiver's secrets, as text; several while one is being
//     changed. The UTF-8 bytes of one are the key. For standard, where it starts
//     with "whsec_" and the rest is base64 of a key that is not empty, the key is
//     what that stands for.
//   - headers: by lowercase name, the values of all headers of that name, as
//     the application sees them. Where an application sees one value only, it is
//     all of them with a comma and a space between.
//   - body: the raw body in base64 (RFC 4648, section 4), or
//   - fill: instead of body, {byte, count} for count bytes of that value.
//   - now: for standard, the time at the receiver, in seconds since 1970.
//   - want: "ok", or why the request is refused: "no_secret", "too_large",
//     "no_signature", "malformed_signature", "mismatch", "too_old" or "too_new".
//     Where several apply, the first in this order. A receiver need not tell
//     them apart, and "too_large" is none of its business where something else
//     bounds bodies.
//
// Every HMAC was computed with OpenSSL, not with this module:
//
//	openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY < message
//
// OpenSSL takes no empty key. For the examples signed with an empty secret the
// key was one zero byte, which HMAC makes the same key.
package webhooktest
