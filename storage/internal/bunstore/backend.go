package bunstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A Backend is what differs between databases: the SQL of the hot paths. Its methods write
// in the transaction of c.
type Backend interface {
	// Classify wraps err with the formsvc error that it amounts to. It returns unknown
	// errors unchanged.
	Classify(err error) error
	// CreateResponses writes new responses with their events, deliveries and idempotency
	// records. It leaves out those whose campaign has another version, or none, or whose
	// idempotency key is taken. It reports which it wrote, and whether it left deliveries
	// to send. If it fails, none may be committed; it fails if an identifier or a
	// reference is taken.
	CreateResponses(ctx context.Context, c bun.IConn, list []*Creation) (written []bool, wake bool, err error)
	// InsertEvents writes events with a delivery for every webhook that listens, and
	// reports whether there was any. No webhook listens for a test event.
	InsertEvents(ctx context.Context, c bun.IConn, events []formsvc.Event) (wake bool, err error)
	// ListEvents returns events in the order of the feed, without their payloads.
	ListEvents(ctx context.Context, c bun.IConn, look *FeedQuery) ([]EventMeta, error)
	// Ready returns the endpoints with deliveries that are due at a time.
	Ready(ctx context.Context, c bun.IConn, now int64) ([]Due, error)
	// Claim leases deliveries that are due at now until a time, as many as the shares
	// say. It is one statement, unless c is in a transaction.
	Claim(ctx context.Context, c bun.IConn, shares []delivery.Share, now, until int64) ([]delivery.Claim, error)
	// Finish writes outcomes, with a notice of each permanent failure, and reports which
	// outcomes were accepted. It is one statement, unless c is in a transaction.
	Finish(ctx context.Context, c bun.IConn, done []Done) ([]bool, error)
}

// A Dialect is how a database differs in what the shared queries need.
type Dialect struct {
	// BinaryIDs says that identifiers are 16 bytes, and not text.
	BinaryIDs bool
	// ManyWriters says that the database has as many writers as connections, and that a
	// statement outside a transaction is one. Then rows that are about to be changed are
	// locked, only creations form groups, each of which is one statement on Read, and
	// every other unit commits alone.
	ManyWriters bool
	// Shard is the row of counters that this store changes.
	Shard int
	// Schema is the number of the last step of the schema that this release knows.
	Schema int
	// FeedOrder is the order of events e in the feed.
	FeedOrder string
	// Metadata is the condition that the response r has metadata with a name and a value, which are its arguments.
	Metadata string
	// Among is the condition that the last operand is one of the identifiers in the argument $1, which AsList returns.
	Among  string
	AsList func([]ID) any
	// By returns a table expression, such as "formsvc_responses AS r", that is read by an
	// index. Nil if a query can't name an index.
	By func(table, index string) string
}

// by is Dialect.By, if there is such a function and an index.
func (s *Store) by(table, index string) string {
	if index == "" || s.dialect.By == nil {
		return table
	}
	return s.dialect.By(table, index)
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
