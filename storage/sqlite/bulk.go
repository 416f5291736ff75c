package sqlite

import (
	"context"
	"strings"

	"github.com/uptrace/bun"
)

// bulkRows is how many rows a bulk writes with one statement: enough to share the cost of
// a call, and few enough that a small group fills it.
const bulkRows = 8

// A bulk inserts rows with two statements of fixed shape, so that both can be prepared:
// one for many rows and one for a single row.
type bulk struct {
	columns   int // arguments per row
	one, many string
}

func newBulk(head, row, tail string) bulk {
	return bulk{
		columns: strings.Count(row, "?"),
		one:     head + row + tail,
		many:    head + strings.Repeat(row+", ", bulkRows-1) + row + tail,
	}
}

// cutValues splits an INSERT at its list of values into the arguments of newBulk.
func cutValues(statement string) (head, row, tail string) {
	head, rest, _ := strings.Cut(statement, "(?")
	row, tail, _ = strings.Cut(rest, ")")
	return head, "(?" + row + ")", tail
}

// rows returns an empty slice with room for the arguments of n rows.
func (b *bulk) rows(n int) []any { return make([]any, 0, n*b.columns) }

// each calls do with statements and their arguments until all rows are written.
func (b *bulk) each(rows []any, do func(statement string, args []any) error) error {
	for len(rows) > 0 {
		statement, n := b.one, b.columns
		if many := bulkRows * b.columns; len(rows) >= many {
			statement, n = b.many, many
		}
		if err := do(statement, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// insert writes rows.
func (b *bulk) insert(ctx context.Context, c bun.IConn, rows []any) error {
	return b.each(rows, func(statement string, args []any) error {
		_, err := c.ExecContext(ctx, statement, args...)
		return err
	})
}

// notNull returns b, or empty bytes instead of nil, which the driver would store as NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
