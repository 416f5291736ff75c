// Package schedule decides which webhook deliveries are claimed, sent and returned to the queue,
// and in which order. It is a pure data structure: it has no clock, lock, goroutine or I/O. The
// caller reports events to a [Scheduler] and follows the returned [Effect].
//
// The life of a delivery: [Scheduler.Plan] reserves room, the caller claims from the queue,
// [Scheduler.Claimed] turns each claim into a [Delivery], and [Scheduler.EndPlan] frees what the
// plan did not use. A delivery is sent at once, or prefetched: then [Scheduler.Loaded] makes it
// wait, and an Effect sends or returns it. While it is sent, [Scheduler.Slow] reports that it takes
// long. [Scheduler.End] ends the request, and [Scheduler.Settle] frees its slot once the queue has
// its outcome.
//
// # Rules
//
// Bulkheads. There are two, fast and slow, each with its own slots. A request
// that takes long moves from the fast to the slow one, or waits in its fast slot
// until there is room. An endpoint that has such a request, or whose last one was
// slow, gets slots of the slow bulkhead only. Claims leave a quarter of that for
// requests that move there.
//
// Deficit round robin, over accounts and then over the endpoints of one, with a quantum of one
// delivery. The deficit is counted in slots: a delivery is debited when it is planned and credited
// when it is settled. So a queue whose deliveries hang keeps its debits. The queue with the fewest
// slots of the bulkhead is next; equals take turns, and each plan continues where the last one
// stopped.
//
// Concurrency window of each endpoint: how many requests it may have in flight. AIMD: it grows by
// one with each success, up to Limits.Window. A failure without a response resets it to one instead
// of halving it, since the next request is a probe anyway. A response with an error status takes no
// longer than a success and doesn't change it. Outcomes that are being recorded count as in flight
// only beyond a number that keeps the endpoint busy meanwhile.
//
// Circuit breaker of each endpoint. Closed: it accepted something since it last failed without a
// response; the window applies. Otherwise it is open while anything is in flight to it, and nothing
// is sent; then it is half-open, and the next delivery is the probe. A new endpoint is half-open.
// There is no timer: the retry schedule of each delivery limits how often a dead endpoint is
// called. Probes have at most half of each bulkhead and of the bytes.
//
// Room. No endpoint gets more slots of a bulkhead than it leaves free, nor more than its part of
// the bytes. So even if many begin to hang at once, others find some room before that is noticed.
//
// Prefetch. For an endpoint that is closed and fast, deliveries are claimed before its window has
// room: as many as it handles in [prefetchTime]. They take no slots, only bytes, and none are added
// while the fast bulkhead is short of room. They are sent in order as the window allows. They
// return to the queue if the endpoint fails or becomes slow, if nothing else of it is in flight,
// and after [Scheduler.Stop].
//
// # Invariants
//
// A property test checks over random histories that no limit above is exceeded, except that one payload
// is always allowed; that no account or endpoint gets anything while one with fewer slots could use it;
// that every delivery is sent or returned, once, and settled once; that a plan would give nothing
// unless an Effect asked for it; and that nothing is in use when everything is settled.
package schedule
