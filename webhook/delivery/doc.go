// Package delivery sends signed webhook requests: it takes deliveries that are
// due from a [Queue], sends them, and records what came of them.
//
//	engine, err := delivery.New(queue, &delivery.Options{OnFailure: notify})
//	// handle err
//	err = engine.Run(ctx) // until ctx ends
//
// The stores of this module are queues. The package needs nothing else of the
// module but the signature and the policy for addresses, so it delivers for any
// other queue as well.
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
//   - webhook-signature: see [github.com/formsvc/toolkit/webhook.SignStandard]
//   - Idempotency-Key: the delivery's identifier again
//   - User-Agent: see [Options.UserAgent]
//   - traceparent and tracestate, if [Options.Tracer] sets them; no signature covers them
//
// and those of [Endpoint.Headers] that are not the engine's, do not say how the
// message is framed or coded, and do not belong to the connection. While an
// endpoint has a previous secret, x-service-signature is made with that one, and
// webhook-signature has one signature of each, the newer first.
//
// An attempt succeeds when the receiver answers 2xx, and ends its answer or
// exceeds [Options.MaxAnswer], within [Options.Timeout] for the whole exchange.
// Everything else is a failure, a redirect too: none is followed, since it would
// carry a signed payload to an address that nobody checked. After a failure it
// is tried again after each of [Options.Retries], and after the last failure
// [Options.OnFailure] is called. A [Replay] has one attempt and no notice.
//
// # What the engine promises
//
// At least once: a delivery is done when the queue has recorded that it is. A
// crash, a lost lease or an unreachable queue lead to repetition, never to loss.
// Receivers tell repetitions by the event's identifier. No order is promised.
//
// Fencing: an outcome counts only as long as the claim does. A process that was
// suspended for longer than its lease changes nothing for its successor.
//
// Counting: an attempt counts when its result is known. Requests that a shutdown
// cut off, and claims that were never sent, use up no retry.
//
// Notices: of a delivery that failed for the last time, OnFailure is told at
// least once, whatever dies in between.
//
// Memory: payloads take at most [Options.MaxBytes]. A delivery in flight takes
// the first 4 KiB of an answer, and less than 300 KiB while the headers of an
// answer come that are as bad as they may be. A slot is free again only when the
// queue accepted the outcome or the lease ended, so a queue that is down stops
// the sending and does not fill the memory.
//
// Discretion: neither secrets nor payloads, nor the path and query of an URL,
// are logged or part of an error.
//
// Isolation: a receiver that is slow, dead or hostile does not hurt those that work.
// [Engine] says what keeps them apart.
package delivery
