package bunstore

import (
	"context"
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
	// AddCount adds n to the number of responses of a campaign.
	AddCount(ctx context.Context, c bun.IConn, campaign formsvc.ID, n int) error
	// InsertEvents writes events with a delivery for every webhook that listens,
	// and tells whether there was any.
	InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error)
	// InsertEvent writes an event without deliveries.
	InsertEvent(ctx context.Context, c bun.IConn, event *formsvc.Event) error
	// ClaimDue leases deliveries that are due at now, as the shares say, until a
	// time. It is one statement, or c is in a transaction.
	ClaimDue(ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64) ([]Leased, error)
	// FinishDeliveries writes outcomes, with a notice of each final failure, and
	// tells which were accepted. It is one statement, or c is in a transaction.
	FinishDeliveries(ctx context.Context, c bun.IConn, done []Done) ([]bool, error)
	// NoteNotices marks the notices of these deliveries as noted.
	NoteNotices(ctx context.Context, c bun.IConn, ids []string) error
	// Payloads reads the payloads of events.
	Payloads(ctx context.Context, c bun.IConn, ids []string) (map[string]delivery.Payload, error)
	// Statements returns the queries that differ in their words only.
	Statements() *Statements
	// ForUpdate is appended to a query whose row is about to be changed.
	ForUpdate() string
}

// Statements are queries with the placeholders of their database.
type Statements struct {
	// Ready finds the endpoints with deliveries that are due at $1: their
	// identifier, account, url, secret, previous secret and until when it signs,
	// and headers.
	Ready string
	// LeaseNotices leases until $1 at most $3 notices that are due at $2: delivery,
	// account, webhook, event, its type, attempts, status, error, when, and the
	// webhook's url or "".
	LeaseNotices string
	// LookAtEvents returns position, type, campaign and size of at most $4 events of
	// the account $1 after the position $2, $3.
	LookAtEvents string
	// LookAtEarlyEvents also returns those that others may still come before.
	LookAtEarlyEvents string
	// ReadEvents returns the events of the account $1 after the position $2, $3
	// up to $4, $5 that are of one of the types $6, of the campaign $7 unless that is
	// "", and no tests: identifier, account, campaign, response, type, when, payload, trace.
	ReadEvents string
	// LookAtAllEvents, LookAtAllEarlyEvents and ReadAllEvents do the same for all
	// accounts, whatever $1 is.
	LookAtAllEvents      string
	LookAtAllEarlyEvents string
	ReadAllEvents        string
	// OwnPosition returns the position here of what was at $1, $2 in the feed of the
	// database that events were copied from: of the last copied event up to there, or 0.
	// "" where positions are copied as they are.
	OwnPosition string
	// LookBackAtEvents returns identifier, position, type, campaign and size of at most
	// $4 events of the account $1 before the position $2, $3, the last of them first.
	LookBackAtEvents string
	// LookAtEventsAbout returns the same of the first $5 events that are no tests and
	// about the response $3 of the campaign $2 and account $1, which was made with the
	// events $4, separated by commas.
	LookAtEventsAbout string
	// TouchResponse writes the response of the campaign ?, with the identifier ? and of
	// the account ?, as it is, and returns responseColumns. "" where nothing needs it.
	TouchResponse string
	// FoldedEmail is the address of the response r with ASCII letters in lower case.
	FoldedEmail string
	// FoldedIndex says that there is an index of it in each campaign.
	FoldedIndex bool
	// IndexedBy are the words between a table and the index that it must be read by; ""
	// where a database has none.
	IndexedBy string
	// TakeQuota counts up to $4 requests and $5 to come of the subject $1 in the
	// window, $2 long, that is now, which is $6 unless the database has a clock of
	// its own, as far as the limit $3 allows; Granted is the rule. It returns how
	// many are counted in the window, how many of them it granted, when the window
	// began and how long it still lasts.
	TakeQuota string
	// UseKeys sets when keys were used where that is later than what they have: $1 is
	// a JSON array of an array for each, with account, key and time.
	UseKeys string
}

// Classified returns cause marked as a kind of formsvc error.
func Classified(kind, cause error) error {
	if cause == nil || errors.Is(cause, kind) {
		return cause
	}
	return fmt.Errorf("%w: %w", kind, cause)
}

// errCommit marks a failure of the commit itself, after which nobody knows
// whether the unit happened.
func errCommit(cause error) error {
	return Classified(formsvc.ErrUnavailable, Classified(formsvc.ErrUnknownOutcome, cause))
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
