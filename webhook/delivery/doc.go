// Package delivery sends signed webhook requests: it takes deliveries that are
// due from a [Queue], sends them, and records what came of them.
//
//	engine, err := delivery.New(queue, &delivery.Options{OnFailure: notify})
//	// handle err
//	err = engine.Run(ctx) // until ctx ends
//
// The stores of this module are queues. The package needs nothing else of the
// module but the signature, so it delivers for any other queue as well.
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
//   - Idempotency-Key: the delivery's identifier again
//   - User-Agent: see [Options.UserAgent]
//
// An attempt succeeds when the receiver answers 2xx, and ends its answer or
// exceeds [Options.MaxAnswer], within [Options.Timeout] for the whole exchange.
// Everything else is a failure, a redirect too: none is followed, since it would
// carry a signed payload to an address that nobody checked. After a failure it
// is tried again after each of [Options.Retries], and after the last failure
// [Options.OnFailure] is called.
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
// Isolation: at most [Options.PerEndpoint] requests to one endpoint are in
// flight, so one that hangs holds that many of the [Options.Concurrency] slots
// and no more; as many again, at most, hold outcomes that are being recorded.
// Concurrency/PerEndpoint endpoints have to hang at once before the others wait.
//
// Memory: a slot holds one payload and the first 4 KiB of one answer. A slot is
// free again only when the queue accepted the outcome or the lease ended, so a
// queue that is down stops the sending and not the memory.
//
// Discretion: neither secrets nor payloads, nor the path and query of an URL,
// are logged or part of an error.
//
// # Clocks
//
// Times in the queue are those of [Options.Now]. Processes that share a queue
// must agree on the time to within [Options.Lease] less [Options.Timeout]; if
// they do not, deliveries are repeated more often, but none is lost.
package delivery
