package delivery

import (
	"context"
	"net/http"
	"time"
)

// A Queue is where deliveries wait. The stores of this module implement it;
// anything that keeps its promises can.
//
// A claim is a lease with a fencing token: whoever holds a claim whose lease
// ended, and was given to somebody else, can neither finish nor release it.
// Times are those of the caller, so that they can be simulated.
//
// The queue only says what is due; how much of it is taken, and for whom, is the
// engine's business.
type Queue interface {
	// Ready returns the endpoints that have deliveries due at now, or whose lease
	// ended by then, in the order of their identifiers. Its cost depends on how
	// many endpoints have work, not on how much. A disabled endpoint is returned
	// only while a [Replay] is due for it; a deleted one never is.
	Ready(ctx context.Context, now time.Time) ([]Endpoint, error)
	// Claim leases deliveries that are due at req.Now, or whose lease ended by
	// then, to the caller and to nobody else until req.Now+req.Lease: at most as
	// many as each share says, those of one kind that are due longest first.
	// Endpoints that do not exist get nothing, disabled ones only replays. Its
	// cost depends on how many it returns.
	Claim(ctx context.Context, req ClaimRequest) ([]Claim, error)
	// Payloads returns the payloads of events by their identifiers.
	Payloads(ctx context.Context, events []string) (map[string]Payload, error)
	// Finish records the outcomes of claims in one unit, and tells for each
	// whether it was accepted: a claim that meanwhile passed to somebody else,
	// or whose delivery is gone, is not, and nothing changes for it.
	// A claim whose lease ended without being taken over is accepted; a second
	// outcome of the same claim never is. An accepted [Failed] of anything but a
	// replay leaves a notice in the same unit, see Failures.
	Finish(ctx context.Context, outcomes []Outcome) (accepted []bool, err error)
	// Wait returns when there may be new work, when the context ends, or after
	// d, whichever comes first. Work that arrived since the last Wait returned
	// ends the next one at once.
	Wait(ctx context.Context, d time.Duration) error
	// Failures leases at most limit notices of final failures that nobody has
	// noted yet, oldest first, to the caller and to nobody else until the time
	// until.
	Failures(ctx context.Context, now, until time.Time, limit int) ([]Failure, error)
	// Noted tells that the notices of these deliveries were given. It is not
	// an error when one is noted or gone already.
	Noted(ctx context.Context, deliveries []string) error
}

// A ClaimRequest says what the caller has room for.
type ClaimRequest struct {
	Now    time.Time
	Lease  time.Duration
	Shares []Share // one per endpoint at most
}

// A Share is room for deliveries of one endpoint.
type Share struct {
	Endpoint string
	N        int
	// LateFirst takes retries first, then replays, then first attempts.
	// Otherwise first attempts go first, then retries, then replays.
	LateFirst bool
}

// An Endpoint is where deliveries go.
type Endpoint struct {
	ID      string
	Account string
	URL     string
	// Secret signs the body.
	Secret string
	// Previous is the secret before Secret while receivers change over: it signs
	// the service's own header, and the Standard Webhooks header carries a
	// signature of each. "" means that there is none.
	Previous string
	// Headers are sent in addition to the engine's own, which they cannot replace.
	Headers http.Header
	// Err says why nothing can be sent to the endpoint at the moment, for example
	// because its secret cannot be read. Its deliveries wait and lose no attempt.
	Err error
}

// Kind says why a delivery is due.
type Kind int

// The kinds.
const (
	First  Kind = iota // no attempt has a result yet
	Retry              // an attempt failed
	Replay             // asked for by hand: one attempt, whatever came before
)

// A Claim is one delivery, leased.
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

// A Payload is what is sent of an event.
type Payload struct {
	Body []byte
	// TraceParent is the span that raised the event, in the form of the header
	// traceparent of W3C Trace Context; "" for none. It is for [Options.Tracer].
	TraceParent string
}

// Result says what becomes of a delivery.
type Result int

// The results.
const (
	Delivered Result = iota + 1 // answered 2xx: done
	Postponed                   // failed: due again at Outcome.Due, as a Retry
	Failed                      // failed for the last time: done
	Released                    // not attempted, or cut off by a shutdown: due again at Outcome.Due, not counted
)

// An Outcome is the result of one claim.
type Outcome struct {
	ID       string
	Endpoint string
	Lease    int64
	Result   Result
	Due      time.Time // for Postponed and Released
	Attempt  Attempt   // what happened; for Released it is not recorded
}

// An Attempt is one request and what came of it.
type Attempt struct {
	Number    int // 1 for the first
	StartedAt time.Time
	Duration  time.Duration
	Status    int    // of the answer; 0 when there was none
	Error     string // the class of the failure, such as "timeout"; "" when delivered
	Answer    []byte // the first bytes of the answer's body, as they came
}

// A Failure tells of a delivery that failed for the last time.
type Failure struct {
	Delivery string    // the delivery's identifier
	EventID  string    // the event's identifier
	Event    string    // the event's type
	Endpoint string    // the endpoint's identifier
	Account  string    // the account's identifier
	Host     string    // host and port of the endpoint's URL, without the rest; "" if there is none
	Attempts int       // how many there were
	Status   int       // of the last answer; 0 when there was none
	Error    string    // the class of the last failure, such as [ClassTimeout]
	At       time.Time // when the last attempt ended
}
