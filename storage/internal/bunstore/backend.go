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

// A Backend is what differs between databases. Its methods write in the transaction of c
// unless they say otherwise.
type Backend interface {
	// Classify wraps err with the formsvc error that it amounts to. It returns unknown
	// errors unchanged.
	Classify(err error) error
	// CreateResponses writes the creations of a group. It sets Wake, and Err of those
	// that can't be written. An error it returns fails the whole group.
	CreateResponses(ctx context.Context, c bun.IConn, group []*Unit) error
	// AddCount adds n to the number of responses of a campaign.
	AddCount(ctx context.Context, c bun.IConn, campaign formsvc.ID, n int) error
	// InsertEvents writes events with a delivery for every webhook that listens, and
	// reports whether there was any.
	InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error)
	// InsertEvent writes an event without deliveries.
	InsertEvent(ctx context.Context, c bun.IConn, event *formsvc.Event) error
	// ClaimDue leases deliveries that are due at now until a time, as many as the shares
	// say. It is one statement, unless c is in a transaction.
	ClaimDue(ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64) ([]Leased, error)
	// FinishDeliveries writes outcomes, with a notice of each permanent failure, and
	// reports which outcomes were accepted. It is one statement, unless c is in a
	// transaction.
	FinishDeliveries(ctx context.Context, c bun.IConn, done []Done) ([]bool, error)
	// NoteNotices marks the notices of these deliveries as noted.
	NoteNotices(ctx context.Context, c bun.IConn, ids []string) error
	// Payloads reads the payloads of events.
	Payloads(ctx context.Context, c bun.IConn, ids []string) (map[string]delivery.Payload, error)
	// Statements returns the queries that differ only in their wording.
	Statements() *Statements
	// ForUpdate is appended to a query whose row is about to be changed.
	ForUpdate() string
}

// Statements are queries with the placeholders of their database.
type Statements struct {
	// Ready finds the endpoints with deliveries that are due at $1. It returns their
	// identifier, account, url, secret, previous secret with its expiry, and headers.
	Ready string
	// LeaseNotices leases up to $3 notices that are due at $2 until $1. It returns
	// delivery, account, webhook, event, event type, attempts, status, error, time, and
	// the webhook's url or "".
	LeaseNotices string
	// LookAtEvents returns identifier, position, type, campaign and size of up to $4 events of
	// the account $1 after the position $2, $3.
	LookAtEvents string
	// LookAtEarlyEvents also returns events that others may still precede.
	LookAtEarlyEvents string
	// LookAtAllEvents and LookAtAllEarlyEvents do the same for all accounts. They ignore $1.
	LookAtAllEvents      string
	LookAtAllEarlyEvents string
	// LookBackAtEvents returns the same of events before the position, newest first.
	LookBackAtEvents string
	// LookAtEventsAbout returns the same of the first $5 events about the response $3 of
	// the campaign $2 and account $1, without tests. $4 has the identifiers of the events
	// that the response was created with, separated by commas.
	LookAtEventsAbout string
	// TouchResponse rewrites the response of the campaign ?, with the identifier ? and of
	// the account ?, unchanged, and returns ResponseColumns. It is "" if the database
	// doesn't need that.
	TouchResponse string
	// FoldedEmail is the email address of the response r with ASCII letters in lower
	// case.
	FoldedEmail string
	// FoldedIndex says that each campaign has an index of FoldedEmail.
	FoldedIndex bool
	// IndexedBy is the clause between a table and the index to read it by; "" if the
	// database has none.
	IndexedBy string
	// UseKeys sets the time of last use of keys where it is later than the stored one. $1
	// is a JSON array of arrays of account, key and time.
	UseKeys string
}

// Classified returns cause wrapped as a kind of formsvc error.
func Classified(kind, cause error) error {
	if cause == nil || errors.Is(cause, kind) {
		return cause
	}
	return fmt.Errorf("%w: %w", kind, cause)
}

// errCommit marks a failed commit, after which the outcome of the transaction is unknown.
func errCommit(cause error) error {
	return Classified(formsvc.ErrUnavailable, Classified(formsvc.ErrUnknownOutcome, cause))
}

// Rebinder returns a function that replaces the ? placeholders of a query by $1, $2, ….
// It caches the queries it has seen. They must be constants without any other question
// mark.
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
