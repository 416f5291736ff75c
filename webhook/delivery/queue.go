package delivery

import (
	"context"
	"net/http"
	"time"
)

// A Queue holds waiting deliveries. The stores of this module implement it; you can implement your
// own.
//
// A claim is a lease with a fencing token: after its lease has ended and the delivery was claimed
// again, the earlier claim can't be finished or released. The caller passes all times, so that they
// can be simulated.
//
// The queue only says what is due; the engine decides how much to claim, and for which endpoints.
type Queue interface {
	// Ready returns the endpoints with deliveries that are due at now or whose lease has ended by
	// then, ordered by identifier. Its cost depends on the number of these endpoints, not of their
	// deliveries. It returns a disabled endpoint only if a [Replay] is due for it, and a deleted
	// one never.
	Ready(ctx context.Context, now time.Time) ([]Endpoint, error)
	// Claim leases deliveries that are due at req.Now, or whose lease has ended by then,
	// exclusively to the caller until req.Now+req.Lease. It returns at most as many as each share
	// allows; within a kind, those that have been due longest come first. Endpoints that don't
	// exist get nothing, disabled ones only replays. Its cost depends on the number of returned
	// claims.
	Claim(ctx context.Context, req ClaimRequest) ([]Claim, error)
	// Payloads returns the payloads of events by their identifiers.
	Payloads(ctx context.Context, events []string) (map[string]Payload, error)
	// Finish records the outcomes of claims in one atomic write, and reports for each whether it
	// was accepted. If the delivery was claimed again or is gone, the outcome isn't accepted and
	// changes nothing. If the lease has ended but the delivery was not claimed again, the outcome
	// is accepted. A second outcome of a claim never is. An accepted [Failed], except of a replay,
	// creates a notice in the same atomic write, see Failures.
	Finish(ctx context.Context, outcomes []Outcome) (accepted []bool, err error)
	// Wait waits until there may be new work, until the context ends, or for d. If work arrived
	// since the last Wait returned, it returns at once.
	Wait(ctx context.Context, d time.Duration) error
	// Failures leases up to limit notices of permanent failures that have not been noted yet,
	// oldest first, exclusively to the caller until the time until.
	Failures(ctx context.Context, now, until time.Time, limit int) ([]Failure, error)
	// Noted records that the notices of these deliveries were given. Notices that are noted or gone
	// already are ignored.
	Noted(ctx context.Context, deliveries []string) error
}

// A ClaimRequest says how many deliveries the caller has room for.
type ClaimRequest struct {
	Now    time.Time
	Lease  time.Duration
	Shares []Share // one per endpoint at most
}

// A Share is the room for deliveries of one endpoint.
type Share struct {
	Endpoint string
	N        int
	// LateFirst takes retries first, then replays, then first attempts.
	// Otherwise first attempts go first, then retries, then replays.
	LateFirst bool
}

// An Endpoint is the receiver of deliveries.
type Endpoint struct {
	ID      string
	Account string
	URL     string
	// Secret signs the body.
	Secret string
	// Previous is the secret before Secret while receivers switch: it signs the service's own
	// header, and the Standard Webhooks header has a signature of each. "" means that there is
	// none.
	Previous string
	// Headers are custom headers. They can't replace the engine's headers.
	Headers http.Header
	// Err says why nothing can be sent to the endpoint now, for example because its secret can't be
	// read. Its deliveries wait without losing attempts.
	Err error
}

// Kind says why a delivery is due.
type Kind int

// The kinds.
const (
	First  Kind = iota // no attempt has a result yet
	Retry              // an attempt failed
	Replay             // a manual redelivery: one attempt
)

// A Claim is a leased delivery.
type Claim struct {
	ID       string // the delivery's identifier, the same for every attempt
	Lease    int64  // the fencing token: grows with every claim of the delivery
	EventID  string
	Event    string // the event's type
	Endpoint string // the endpoint's identifier
	Kind     Kind
	Attempts int // attempts whose result is known
	Size     int // of the payload in bytes
}

// A Payload is the body to send for an event.
type Payload struct {
	Body []byte
	// TraceParent is the span that raised the event, in the form of the header
	// traceparent of W3C Trace Context; "" for none. It is for [Options.Tracer].
	TraceParent string
}

// Result is the outcome of a claim.
type Result int

// The results.
const (
	Delivered Result = iota + 1 // 2xx: done
	Postponed                   // failed: due again at Outcome.Due, as a Retry
	Failed                      // failed permanently: done
	Released                    // not attempted, or canceled by a shutdown: due again at Outcome.Due, not counted
)

// An Outcome is the result of one claim.
type Outcome struct {
	ID       string
	Endpoint string
	Lease    int64
	Result   Result
	Due      time.Time // for Postponed and Released
	Attempt  Attempt   // not recorded for Released
}

// An Attempt is one request and its result.
type Attempt struct {
	Number    int // 1 for the first
	StartedAt time.Time
	Duration  time.Duration
	Status    int    // of the HTTP response; 0 if there was none
	Error     string // the class of the failure, such as "timeout"; "" if delivered
	Answer    []byte // the first bytes of the response's body, unchanged
}

// A Failure describes a delivery that failed permanently.
type Failure struct {
	Delivery string    // the delivery's identifier
	EventID  string    // the event's identifier
	Event    string    // the event's type
	Endpoint string    // the endpoint's identifier
	Account  string    // the account's identifier
	Host     string    // host and port of the endpoint's URL, without the rest; "" if there is none
	Attempts int       // number of attempts
	Status   int       // of the last HTTP response; 0 if there was none
	Error    string    // the class of the last failure, such as [ClassTimeout]
	At       time.Time // when the last attempt ended
}
