package delivery

import (
	"context"
	"time"
)

// A Queue is where deliveries wait. The stores of this module implement it;
// anything that keeps its promises can.
//
// A claim is a lease with a fencing token: whoever holds a claim whose lease
// ended, and was given to somebody else, can neither finish nor release it.
// Times are those of the caller, so that they can be simulated.
type Queue interface {
	// Claim leases deliveries that are due at req.Now, or whose lease ended by
	// then, to the caller and to nobody else until req.Now+req.Lease. It returns
	// at most req.Limit, and at most req.PerEndpoint less req.Busy[endpoint] for
	// one endpoint, those that are due longest first. The room is shared evenly:
	// endpoints take turns in the order of their identifiers, starting after
	// req.After and going round, and what one can't use goes to the others. Its cost depends on how many endpoints have work, not on how
	// much. Deliveries of deleted or disabled endpoints are not returned.
	Claim(ctx context.Context, req ClaimRequest) ([]Claim, error)
	// Payloads returns the bodies of events by their identifiers.
	Payloads(ctx context.Context, events []string) (map[string][]byte, error)
	// Finish records the outcomes of claims in one unit, and tells for each
	// whether it was accepted: a claim that meanwhile passed to somebody else,
	// or whose delivery is gone, is not, and nothing changes for it.
	// A claim whose lease ended without being taken over is accepted; a second
	// outcome of the same claim never is.
	Finish(ctx context.Context, outcomes []Outcome) (accepted []bool, err error)
	// Wait returns when there may be new work, when the context ends, or after
	// d, whichever comes first. Work that arrived since the last Wait returned
	// ends the next one at once.
	Wait(ctx context.Context, d time.Duration) error
}

// A ClaimRequest says what the caller has room for.
type ClaimRequest struct {
	Now         time.Time
	Lease       time.Duration
	Limit       int            // claims in all
	PerEndpoint int            // claims of one endpoint that may be in flight here
	Busy        map[string]int // endpoint → claims of it that are in flight here
	After       string         // the endpoint that was served last; "" means none
}

// An Endpoint is where deliveries go.
type Endpoint struct {
	ID      string
	Account string
	URL     string
	Secret  string // signs the body
}

// A Claim is one delivery, leased.
type Claim struct {
	ID       string // the delivery's identifier, the same for every attempt
	Lease    int64  // the fencing token: grows with every claim of the delivery
	EventID  string
	Event    string // the event's type
	Attempts int    // attempts whose result is known
	Endpoint Endpoint
}

// Result says what becomes of a delivery.
type Result int

// The results.
const (
	Delivered Result = iota + 1 // answered 2xx: done
	Retry                       // failed: due again at Outcome.Due
	Failed                      // failed for the last time: done
	Released                    // not attempted, or cut off by a shutdown: due again at Outcome.Due, not counted
)

// An Outcome is the result of one claim.
type Outcome struct {
	ID      string
	Lease   int64
	Result  Result
	Due     time.Time // for Retry and Released
	Attempt Attempt   // what happened; for Released it is not recorded
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
