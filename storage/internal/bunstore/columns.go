package bunstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A Column is a column of the records that creating a response writes. SQLite takes a row at a time, Postgres an array
// for each column; both build their statements from one list.
type Column[R any] struct {
	Name string
	Type string // in Postgres: uuid, text, bigint, bytea or boolean
	// Value returns a formsvc.ID, which is NULL if it is empty, a string, an int64, a bool, bytes, or nil for NULL.
	Value func(R) any
}

// Names returns the names of columns, each after a prefix such as "r.", separated by commas.
func Names[R any](columns []Column[R], prefix string) string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = prefix + columns[i].Name
	}
	return strings.Join(names, ", ")
}

// Args returns the values of a row, with identifiers by id.
func Args[R any](columns []Column[R], row R, id func(formsvc.ID) any) []any {
	args := make([]any, len(columns))
	for i := range columns {
		v := columns[i].Value(row)
		if named, ok := v.(formsvc.ID); ok {
			v = id(named)
		}
		args[i] = v
	}
	return args
}

// A responseColumn is a column of formsvc_responses.
type responseColumn struct {
	name  string
	kind  string                      // as in Column.Type
	value func(*Creation) any         // as in Column.Value
	scan  func(*formsvc.Response) any // where a query reads it to; nil for one that isn't part of the record
	fixed bool                        // whether a change of the response leaves it
}

type (
	creation = *Creation
	response = *formsvc.Response
)

// responseFields has the columns of formsvc_responses. No other place in the code lists them.
//
//nolint:gochecknoglobals // immutable
var responseFields = []responseColumn{
	{"id", "uuid", func(n creation) any { return n.Response.ID }, func(r response) any { return (*ID)(&r.ID) }, true},
	{"account_id", "uuid", func(n creation) any { return n.Response.AccountID }, nil, true},
	{"campaign_id", "uuid", func(n creation) any { return n.Response.CampaignID }, nil, true},
	{"reference", "text", func(n creation) any { return n.Response.Reference }, func(r response) any { return &r.Reference }, true},
	{"status", "text", func(n creation) any { return n.Response.Status }, func(r response) any { return &r.Status }, false},
	{"email", "text", func(n creation) any { return n.Response.User.Email }, func(r response) any { return &r.User.Email }, false},
	{"first_name", "text", func(n creation) any { return n.Response.User.FirstName }, func(r response) any { return &r.User.FirstName }, false},
	{"last_name", "text", func(n creation) any { return n.Response.User.LastName }, func(r response) any { return &r.User.LastName }, false},
	{"answers", "text", func(n creation) any { return n.Response.Answers.JSON() }, func(r response) any { return (*answers)(&r.Answers) }, false},
	{"version", "bigint", func(n creation) any { return n.Response.Version }, func(r response) any { return &r.Version }, false},
	{"created_at", "bigint", func(n creation) any { return micros(n.Response.CreatedAt) }, func(r response) any { return (*instant)(&r.CreatedAt) }, true},
	{"updated_at", "bigint", func(n creation) any { return micros(n.Response.UpdatedAt) }, func(r response) any { return (*instant)(&r.UpdatedAt) }, false},
	{"completed_at", "bigint", func(n creation) any { return micros(n.Response.CompletedAt) }, func(r response) any { return (*instant)(&r.CompletedAt) }, false},
	{"events", "bytea", func(n creation) any { return eventIDs(&n.Change) }, nil, true},
	{"person", "bigint", func(n creation) any { return person(n.Response.CampaignID, n.Response.User.Email) }, nil, false},
	{"held", "text", func(n creation) any { return string(n.Response.Held) }, func(r response) any { return (*string)(&r.Held) }, false},
	{"metadata", "text", func(n creation) any { return n.Response.Metadata.JSON() }, func(r response) any { return (*string)(&r.Metadata) }, false},
	{"call", "bytea", creation.Call, nil, false},
	{"request", "bytea", creation.request, nil, false},
}

// ResponseColumns are the columns of a new response.
func ResponseColumns() []Column[*Creation] {
	list := make([]Column[*Creation], len(responseFields))
	for i := range responseFields {
		f := &responseFields[i]
		list[i] = Column[*Creation]{f.name, f.kind, f.value}
	}
	return list
}

// An instant is a time that is stored in microseconds since 1970.
type instant time.Time

// Scan implements sql.Scanner.
func (t *instant) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("bunstore: a time is a %T", src)
	}
	*t = instant(fromMicros(us))
	return nil
}

// answers are formsvc.Answers as stored.
type answers formsvc.Answers

// Scan implements sql.Scanner.
func (a *answers) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("bunstore: answers are a %T", src)
	}
	*a = answers(formsvc.StoredAnswers(text))
	return nil
}

// NotNull returns b, or empty bytes instead of nil, which drivers store as NULL.
func NotNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
