package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Backend is what differs between databases. Its methods write inside the
// transaction that c is in, unless they say otherwise.
type Backend interface {
	// Classify returns err with the formsvc error it amounts to wrapped beside
	// it; errors it doesn't know come back as they are.
	Classify(err error) error
	// CreateResponses writes the creations of a group and sets Err of the ones
	// that can't be written, and Wake. An error it returns fails the whole group.
	CreateResponses(ctx context.Context, c bun.IConn, group []*Unit) error
	// InsertEvents writes events with a delivery for every webhook that listens,
	// and tells whether there was any.
	InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error)
	// ClaimDue leases due deliveries, at most each share's number, until a time.
	ClaimDue(ctx context.Context, c bun.IConn, shares []Share, now, until int64) ([]Leased, error)
	// FinishDeliveries writes outcomes and tells which were accepted.
	FinishDeliveries(ctx context.Context, c bun.IConn, outcomes []delivery.Outcome) ([]bool, error)
	// Payloads reads the payloads of events.
	Payloads(ctx context.Context, c bun.IConn, ids []string) (map[string][]byte, error)
	// ForUpdate is appended to a query whose row is about to be changed.
	ForUpdate() string
}

// A Share is how many deliveries of one endpoint to claim.
type Share struct {
	Endpoint delivery.Endpoint
	N        int
}

// A Leased is a row of a claim.
type Leased struct {
	ID, EventID, Endpoint string
	Event                 int64 // the event's bit, see EventBit
	Attempts              int
	Lease                 int64
}

// classified is a driver's error together with what it means.
type classified struct {
	kind  error
	cause error
}

func (e *classified) Error() string { return fmt.Sprintf("%v: %v", e.kind, e.cause) }

// Unwrap lets errors.Is and errors.As see both.
func (e *classified) Unwrap() []error { return []error{e.kind, e.cause} }

// Classified returns cause marked as a kind of formsvc error.
func Classified(kind, cause error) error {
	if cause == nil || errors.Is(cause, kind) {
		return cause
	}
	return &classified{kind: kind, cause: cause}
}

// ErrCommit marks a failure of the commit itself, after which nobody knows
// whether the unit happened.
func ErrCommit(cause error) error {
	return Classified(formsvc.ErrUnavailable, Classified(formsvc.ErrUnknownOutcome, cause))
}

// IsCommitError reports whether err is of ErrCommit.
func IsCommitError(err error) bool { return errors.Is(err, formsvc.ErrUnknownOutcome) }

// ScanLeased appends the rows of a claim to leased and closes them.
func ScanLeased(leased []Leased, rows *sql.Rows) (_ []Leased, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var l Leased
		if err := rows.Scan(&l.ID, &l.EventID, &l.Endpoint, &l.Event, &l.Attempts, &l.Lease); err != nil {
			return nil, err
		}
		leased = append(leased, l)
	}
	return leased, rows.Err()
}

// Rebinder returns a function that turns the ? placeholders of a query into
// $1, $2, …. It remembers the queries it has seen, which must be constants
// without any other question mark.
func Rebinder() func(string) string {
	var seen sync.Map
	return func(query string) string {
		if known, ok := seen.Load(query); ok {
			return known.(string) //nolint:forcetypeassert // only strings are stored
		}
		rebound := dollar(query)
		seen.Store(query, rebound)
		return rebound
	}
}

func dollar(query string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		fmt.Fprintf(&b, "$%d", n)
		query = after
	}
}
