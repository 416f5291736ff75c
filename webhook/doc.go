// Package webhook is for receivers: it checks that a webhook request comes from
// the service, and reads what it says. It uses only the standard library.
//
// A receiver needs three lines:
//
//	verifier, err := webhook.NewVerifier([]string{secret}, nil)
//	// handle err
//	http.Handle("/hooks", verifier.EventHandler(receive))
//
// The function receive gets the [Event] of every authentic request. When it
// returns an error, the service sends the event again later. Every other request
// is answered by the handler and never reaches the function.
//
// A handler of your own takes its place with [Verifier.Handler]: it finds the
// [Delivery] with [FromContext], reads it with [ParseEvent] and answers by
// itself.
//
// # Signature
//
// The header x-service-signature carries the HMAC-SHA-256 (RFC 2104, FIPS
// 180-4) of the raw request body, keyed with the webhook's secret, as 64
// lowercase hexadecimal digits. "Raw" means the bytes as they came: a body that
// was decompressed, re-encoded or parsed and written again no longer matches.
// Where a framework reads the body first, keep its bytes and call
// [Verifier.Verify].
//
// # What is authenticated
//
// Only the body is signed. Headers other than the signature are hints that
// anyone who has seen one request can change: [Delivery.ID] and
// [Delivery.Attempt] come from them. [Delivery.Event] and [Delivery.EventID]
// come from the signed body.
//
// # Replays
//
// A signature over the body alone does not expire: who has seen a request can
// send it again. The service therefore signs each attempt a second time, in the
// headers of Standard Webhooks (https://www.standardwebhooks.com): webhook-id,
// webhook-timestamp and webhook-signature. A [Verifier] looks at them only with
// [Options.Tolerance], and then requires them. The libraries of Standard
// Webhooks verify them as well; [SignStandard] says what the key is.
//
// # Repetitions
//
// The service sends an event again when it got no answer, so every receiver gets
// some events twice. There are three ways to handle them once:
//
//   - The effect is in a database: let [SQLDeduper.Once] run it, or reserve the
//     event in a transaction of yours with [SQLDeduper.Reserve]. Effect and note of it are there together or
//     not at all, whatever fails when.
//   - The effect is elsewhere: give a [SQLDeduper] to [Options.Deduper]. Several
//     processes can share its table. Whoever dies between effect and note has
//     the event handled again.
//   - The receiver is one process and may handle an event again after a
//     restart: give a [MemoryDeduper] to [Options.Deduper].
//
// # Answering
//
// The service takes any 2xx status as success. Any other status, and no answer
// within 30 seconds, is a failure, and the same bytes are sent again after 1, 5
// and 30 minutes. Answer 200 at once and do long work afterwards. No order is
// promised between events.
//
// # Changing the secret
//
// A [Verifier] takes several secrets. Give it the new and the old one, change
// the secret at the service, and drop the old one when [Delivery.SecretIndex]
// no longer shows its use.
//
// # More
//
// README.md beside this file goes from an empty directory to a receiver in
// production. The package [github.com/formsvc/toolkit/webhook/webhooktest] has signed
// requests, a recording receiver and test vectors for any language.
package webhook
