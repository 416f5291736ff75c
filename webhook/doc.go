// Package webhook is for receivers: it verifies that a webhook request comes from the service
// (formsvc), and parses its event. It uses only the standard library.
//
// A receiver needs three lines:
//
//	verifier, err := webhook.NewVerifier([]string{secret}, nil)
//	// handle err
//	http.Handle("/hooks", verifier.EventHandler(receive))
//
// The function receive gets the [Event] of every authentic request. If it returns an error, the
// service sends the event again later. The handler refuses every other request itself.
//
// To write the HTTP response yourself, wrap your own handler with [Verifier.Handler]. It gets the
// [Delivery] with [FromContext] and parses it with [ParseEvent].
//
// # Signature
//
// The header x-service-signature carries the HMAC-SHA-256 (RFC 2104, FIPS 180-4) of the raw request
// body as 64 lowercase hexadecimal digits. The key is the webhook's secret. "Raw" means the
// received bytes: a body that was decompressed, re-encoded, or parsed and serialized again no
// longer matches. If a framework reads the body first, keep its bytes and call [Verifier.Verify].
//
// # What is authenticated
//
// Only the body is signed. Headers other than the signature are hints that anyone who has seen one
// request can change: [Delivery.ID] and [Delivery.Attempt] come from them. [Delivery.Event] and
// [Delivery.EventID] come from the signed body.
//
// A signature over the body alone doesn't expire: anyone who has seen a request can send it again.
// The service therefore signs each attempt a second time, in the headers of Standard Webhooks
// (https://www.standardwebhooks.com). A [Verifier] checks them only with [Options.Tolerance], and then
// requires them. Other libraries verify them as well; [SetSignatures] says what the key is.
//
// # Duplicates
//
// The service sends an event again if it got no HTTP response, so every receiver gets some events
// more than once. There are three ways to handle each event once:
//
//   - The effect is in a database: let [SQLDeduper.Once] run it, or reserve the event in your own
//     transaction with [SQLDeduper.Reserve].
//   - The effect is elsewhere: give a [SQLDeduper] to [Options.Deduper]. Several processes can
//     share its table. If a process dies between the effect and its record, the event is handled
//     again.
//   - The receiver is one process that may handle an event again after a restart: give a
//     [MemoryDeduper] to [Options.Deduper].
//
// # The reply
//
// Any 2xx status is a success. Any other status, or no reply within 30 seconds, is a failure,
// and the same bytes are sent again after 1, 5 and 30 minutes. Reply with 200 at once and do long
// work afterwards. Events may arrive in any order.
//
// # Changing the secret
//
// A [Verifier] accepts several secrets. Give it the new and the old one, and change the secret at
// the service. When [Delivery.SecretIndex] shows that the old one is no longer used, remove it.
//
// # More
//
// README.md in this directory leads from an empty directory to a receiver in production. Package
// [github.com/formsvc/toolkit/webhook/webhooktest] has signed requests, a recording receiver and
// test vectors for any language.
package webhook
