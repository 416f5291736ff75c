// Package delivery sends signed webhook requests: it claims due deliveries from a [Queue], sends
// them, and records their outcomes.
//
//	engine, err := delivery.New(queue, &delivery.Options{OnFailure: notify})
//	// handle err
//	err = engine.Run(ctx) // until ctx ends
//
// The stores of this module are queues. The package depends only on the signature and the address
// policy of this module, so it works with any other queue as well.
//
// # What a receiver gets
//
// A POST whose body is the payload, byte for byte the same on every attempt,
// with the headers
//
//   - Content-Type: application/json
//   - x-service-signature: see [github.com/formsvc/toolkit/webhook.Sign]
//   - x-service-event: the event's type
//   - x-service-delivery: the delivery's identifier, the same on every attempt
//   - x-service-attempt: 1 for the first
//   - webhook-id: the event's identifier, the same on every attempt
//   - webhook-timestamp: when the attempt was made, in seconds since 1970
//   - webhook-signature: see [github.com/formsvc/toolkit/webhook.SetSignatures]
//   - Idempotency-Key: the delivery's identifier, too
//   - User-Agent: formsvc-webhooks/1
//   - traceparent and tracestate, if [Options.Tracer] sets them; they aren't signed
//
// and those of [Endpoint.Headers], except headers that the engine sets, that describe the message's
// framing or coding, or that belong to the connection. While an endpoint has a previous secret,
// x-service-signature is signed with that one, and webhook-signature has a signature of each, the
// newer first.
//
// An attempt succeeds if the receiver replies with 2xx, and the body ends or exceeds
// 64 KiB, within [Options.Timeout] for the whole exchange. Everything else is a
// failure. Redirects are failures, too: following one would send a signed payload to an unchecked
// address. A failed delivery is retried after the delays of [Options.Retries]; after the last
// failure [Options.OnFailure] is called. A [Replay] has one attempt and no notice.
//
// # What the engine promises
//
// At least once: a delivery is done when the queue has recorded that. A crash, a lost lease or an
// unreachable queue leads to duplicates, never to loss. Receivers detect duplicates by the event's
// identifier. Deliveries may arrive in any order.
//
// Fencing: an outcome is recorded only if no other process has claimed the delivery since. So a
// process that was suspended for longer than its lease can't overwrite its successor's outcome.
//
// Counting: an attempt counts when its result is known. Requests that a shutdown canceled, and
// claims that were never sent, use no retry.
//
// Notices: OnFailure is called at least once for each permanently failed delivery, even if
// processes die.
//
// Memory: payloads take at most [Options.MaxBytes]. A delivery in flight keeps the first 4 KiB of a
// response, and takes less than 300 KiB while the largest possible response headers arrive. A slot
// is freed only after the queue accepted the outcome or the lease ended. So if the queue is down,
// sending stops and memory doesn't fill up.
//
// Confidentiality: secrets, payloads, and the path and query of URLs are never logged or part of an
// error.
package delivery
