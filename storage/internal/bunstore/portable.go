package bunstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/uptrace/bun"
)

// A Kind is the type of a column's values. They are passed as int64 (for Bool, too: 0 or
// 1), string or []byte, and nil for NULL.
type Kind byte

// The kinds of columns.
const (
	UUID Kind = iota
	Text
	Int
	Bool
	Bytes
)

// A Column is a column of a [Table].
type Column struct {
	Name string
	Kind Kind
	// Expr is the expression that reads it. Defaults to its name.
	Expr string
}

func (c *Column) expr() string {
	if c.Expr == "" {
		return c.Name
	}
	return c.Expr
}

// A Table is what package transfer reads and writes of a table: the same columns in the
// same order in each database.
type Table struct {
	Name    string
	Columns []Column
	// Key has the columns that rows are ordered by. They are never NULL.
	Key []string
}

// A Portable is a database whose rows can be read, and written with the values they had
// elsewhere.
type Portable interface {
	// Place returns where the database is, without a password.
	Place() string
	// Kind returns "sqlite" or "postgres".
	Kind() string
	// Versions returns the schema's version, 0 if it has none, and the newest version
	// that this release knows.
	Versions(ctx context.Context) (has, knows int, err error)
	// TablesTo returns the tables to read when copying to a database of that kind,
	// parents first. TablesFrom returns how to read back those that were copied from one.
	TablesTo(kind string) []Table
	TablesFrom(kind string) []Table
	// Param returns a placeholder for a value of that kind, for Rebind.
	Param(k Kind) string
	// Rebind replaces ? placeholders by the database's own.
	Rebind(query string) string
	// Read calls do with a connection that sees a snapshot of the database.
	Read(ctx context.Context, do func(c bun.IConn) error) error
	// Write calls do in a transaction, and commits it. do may run more than once.
	Write(ctx context.Context, do func(c bun.IConn) error) error
	// Insert writes rows with the columns of the table.
	Insert(ctx context.Context, c bun.IConn, t *Table, rows [][]any) error
	// Fence waits for transactions under way and makes every later write to the tables
	// except formsvc_identity fail with formsvc.ErrMoved. Unfence ends that.
	Fence(ctx context.Context, c bun.IConn) error
	Unfence(ctx context.Context, c bun.IConn) error
	// Empty removes all rows except those of formsvc_identity and prepares the tables for
	// Insert. Finish makes them ready for use: it rebuilds the counters, and the feed's
	// next position will be after last.
	Empty(ctx context.Context, c bun.IConn) error
	Finish(ctx context.Context, c bun.IConn, last int64) error
	// LastPosition returns a position of the feed that no event is after.
	LastPosition(ctx context.Context, c bun.IConn) (int64, error)
	// Classify is that of Backend.
	Classify(err error) error
}

// Uncopied returns the tables that aren't copied: those about the database itself, and
// sign-in links and sessions.
func Uncopied() []string {
	return []string{"formsvc_schema", "formsvc_identity", "formsvc_copy", "formsvc_links", "formsvc_sessions"}
}

// Counted returns the tables that Finish rebuilds.
func Counted() []string { return []string{"formsvc_counters", "formsvc_statuses"} }

// Select returns a query for up to limit rows of the table after the key after, or from
// the first one if it is empty, and its arguments.
func (t *Table) Select(d Portable, after []any, limit int) (query string, args []any) {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.Columns[i].expr())
	}
	b.WriteString(" FROM " + t.Name)
	keys, params := make([]string, len(t.Key)), make([]string, len(t.Key))
	for i, name := range t.Key {
		c := t.column(name)
		keys[i], params[i] = c.expr(), d.Param(c.Kind)
	}
	order := strings.Join(keys, ", ")
	if len(after) > 0 {
		fmt.Fprintf(&b, " WHERE (%s) > (%s)", order, strings.Join(params, ", "))
	}
	b.WriteString(" ORDER BY " + order)
	if limit > 0 {
		fmt.Fprintf(&b, " LIMIT %d", limit)
	}
	return d.Rebind(b.String()), after
}

// All returns a query for all rows, in any order.
func (t *Table) All() string {
	list := make([]string, len(t.Columns))
	for i := range t.Columns {
		list[i] = t.Columns[i].expr()
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + t.Name
}

func (t *Table) column(name string) *Column { return &t.Columns[t.Index(name)] }

// Index returns the index of a column, which must exist.
func (t *Table) Index(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	panic("bunstore: " + t.Name + " has no column " + name)
}

// columns parses a list such as "id uuid, name text".
func columns(list string) []Column {
	kinds := map[string]Kind{"uuid": UUID, "text": Text, "int": Int, "bool": Bool, "bytes": Bytes}
	var made []Column
	for one := range strings.SplitSeq(list, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(one), " ")
		k, ok := kinds[kind]
		if !ok {
			panic("bunstore: no kind of column: " + one)
		}
		made = append(made, Column{Name: name, Kind: k})
	}
	return made
}

// Tables returns the tables that are copied, with all their columns, parents first. An
// event's position is its xact and seq, as in Postgres.
func Tables() []Table {
	made := make([]Table, 0, len(tables))
	for _, t := range tables {
		made = append(made, Table{Name: t.name, Columns: columns(t.columns), Key: strings.Fields(t.key)})
	}
	return made
}

//nolint:gochecknoglobals // immutable
var tables = []struct{ name, key, columns string }{
	{"formsvc_accounts", "id", "id uuid, name text, contact text, campaigns int, created_at int"},
	{"formsvc_keys", "id", "id uuid, account_id uuid, name text, prefix text, hash bytes, permissions text, created_at int, " +
		"expires_at int, revoked_at int, used_at int"},
	{"formsvc_campaigns", "id", "id uuid, account_id uuid, title text, description text, status text, opens_at int, " +
		"closes_at int, modules text, metadata text, version int, created_at int, updated_at int, email_optional bool"},
	{"formsvc_secret_keys", "id", "id text, created_at int"},
	{"formsvc_webhooks", "id", "id uuid, account_id uuid, url text, events int, campaign_id uuid, secret text, previous_secret text, " +
		"previous_until int, headers text, disabled bool, version int, created_at int, updated_at int"},
	{"formsvc_responses", "campaign_id id", "id uuid, account_id uuid, campaign_id uuid, reference text, status text, email text, " +
		"first_name text, last_name text, answers text, version int, created_at int, updated_at int, completed_at int, events text"},
	{"formsvc_files", "id", "id uuid, account_id uuid, campaign_id uuid, response_id uuid, name text, content_type text, " +
		"module text, size int, sha256 bytes, created_at int, blocks bytes"},
	{"formsvc_comments", "id", "id uuid, account_id uuid, campaign_id uuid, response_id uuid, body text, author text, created_at int"},
	{"formsvc_signatures", "id", "id uuid, account_id uuid, campaign_id uuid, response_id uuid, email text, folded text, " +
		"first_name text, last_name text, file_id uuid, provider text, sha256 bytes, signed_at int, created_at int"},
	{"formsvc_events", "xact seq", "id uuid, account_id uuid, campaign_id uuid, response_id uuid, xact int, seq int, type int, " +
		"created_at int, about uuid, payload bytes, traceparent text"},
	{"formsvc_deliveries", "webhook_id id", "webhook_id uuid, id uuid, event_id uuid, event_type int, due_at int, lease int, " +
		"created_at int, updated_at int, size int, kind int, state int, attempts int"},
	{"formsvc_attempts", "delivery_id number", "delivery_id uuid, number int, started_at int, duration int, status int, error text, answer bytes"},
	{"formsvc_notices", "delivery_id", "delivery_id uuid, account_id uuid, webhook_id uuid, event_id uuid, event_type int, attempts int, " +
		"status int, error text, at int, due_at int, noted bool"},
	{"formsvc_failing", "webhook_id", "webhook_id uuid, account_id uuid, failures int, first_at int, since int, last_at int, " +
		"status int, error text, told_at int, until int, lease int"},
	{"formsvc_idempotency", "id", "id bytes, account_id uuid, request bytes, status int, etag text, location text, response_id uuid, " +
		"created_at int, body bytes"},
	{"formsvc_quota", "subject start", "subject uuid, start int, used int, granted int"},
	{"formsvc_audit", "id", "id uuid, account_id uuid, actor text, action text, target text, details text, created_at int"},
}
