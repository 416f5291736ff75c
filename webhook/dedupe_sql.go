package webhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// SQLOptions are the optional settings of a [SQLDeduper]. nil means all
// defaults.
type SQLOptions struct {
	// Table is the name of the table: up to 63 lower case letters, digits and underscores that
	// don't start with a digit. A schema in the same form and a dot may precede it. Receivers that
	// handle the same events in different ways need one table each. Defaults to "webhook_events".
	Table string

	// QuestionMarks writes parameters as ?, for SQLite, instead of $1, for Postgres. Defaults to
	// false.
	QuestionMarks bool

	// Reservation is how long [SQLDeduper.Begin] reserves an event if its handling neither succeeds
	// nor fails. It should be longer than handling takes. It must not be negative. Defaults to 1
	// minute.
	Reservation time.Duration

	// Now is the clock. It may be called by several goroutines at once. Defaults to [time.Now].
	Now func() time.Time
}

// An Execer executes statements in a transaction, as [sql.Tx] and its wrappers do.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A SQLDeduper remembers events in a database table, for any number of processes. Create it with
// [NewSQLDeduper]. It works with Postgres, and with SQLite from version 3.24.
//
// It can be used in two ways, also both at once. For effects in the same database,
// [SQLDeduper.Once], or [SQLDeduper.Reserve] in the caller's transaction, makes the effect happen
// exactly once. For effects elsewhere, it is a [Deduper] with its own transactions and the promises
// of a Deduper.
//
// It is safe for concurrent use. Rows stay until [SQLDeduper.Prune].
type SQLDeduper struct {
	db          *sql.DB
	reservation time.Duration
	now         func() time.Time

	schema, begin, state, commit, abort, prune string
}

var _ Deduper = (*SQLDeduper)(nil)

// NewSQLDeduper returns a SQLDeduper for a table with the schema of [SQLDeduper.Schema]. The table
// must exist before events arrive. NewSQLDeduper doesn't access the database, and the SQLDeduper
// never closes it. It fails if db is nil or an option is out of range.
func NewSQLDeduper(db *sql.DB, opts *SQLOptions) (*SQLDeduper, error) {
	var o SQLOptions
	if opts != nil {
		o = *opts
	}
	if o.Table == "" {
		o.Table = "webhook_events"
	}
	if o.Reservation == 0 {
		o.Reservation = defaultReservation
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case db == nil:
		return nil, errors.New("webhook: no database")
	case !isTable(o.Table):
		return nil, errors.New("webhook: Table is not the name of a table")
	case o.Reservation < 0:
		return nil, errors.New("webhook: Reservation is negative")
	}
	d := &SQLDeduper{db: db, reservation: o.Reservation, now: o.Now}
	d.prepare(o)
	return d, nil
}

// isTable reports whether name is one or two identifiers. Postgres would truncate longer ones,
// which could then name another table.
func isTable(name string) bool {
	return regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`).MatchString(name)
}

// prepare builds the statements. Quotes allow a reserved word as the name; since it is in lower
// case, they don't change its meaning.
func (d *SQLDeduper) prepare(o SQLOptions) {
	pairs := []string{"TABLE", `"` + strings.ReplaceAll(o.Table, ".", `"."`) + `"`}
	if o.QuestionMarks {
		pairs = append(pairs, "$1", "?", "$2", "?", "$3", "?")
	}
	write := strings.NewReplacer(pairs...).Replace
	d.begin = write(`INSERT INTO TABLE AS e (id, done, changed_at) VALUES ($1, 0, $2)
ON CONFLICT (id) DO UPDATE SET changed_at = excluded.changed_at WHERE e.done = 0 AND e.changed_at <= $3`)
	d.state = write(`SELECT done FROM TABLE WHERE id = $1`)
	// Reserve takes over a reservation, so that an event may be handled with Begin, then Reserve,
	// then Commit.
	d.commit = write(`INSERT INTO TABLE AS e (id, done, changed_at) VALUES ($1, 1, $2)
ON CONFLICT (id) DO UPDATE SET done = 1, changed_at = excluded.changed_at WHERE e.done = 0`)
	d.abort = write(`DELETE FROM TABLE WHERE id = $1 AND done = 0`)
	d.prune = write(`DELETE FROM TABLE WHERE changed_at < $1`)
	d.schema = `CREATE TABLE IF NOT EXISTS ` + pairs[1] + ` (
	id         TEXT     NOT NULL PRIMARY KEY,
	done       SMALLINT NOT NULL, -- 0: reserved, 1: handled
	changed_at BIGINT   NOT NULL  -- when it was, in microseconds since 1970
)`
}

// Schema returns the statement that creates the table if it does not exist, for
// your migrations. It has one line for each column and no semicolon at the end.
func (d *SQLDeduper) Schema() string { return d.schema }

// Reserve records in the transaction tx that the event is handled, and reports whether it was
// fresh. If it was fresh, perform the event's effect in the same transaction and commit. Otherwise
// the effect has already happened: reply with 200. The event is handled if and only if tx commits:
// a rollback makes it fresh again. A reservation by [SQLDeduper.Begin] doesn't count as handled. tx
// must not be the database itself: the record would commit before the effect.
//
// Duplicates can arrive at the same time. On Postgres the second Reserve waits until the first
// transaction ends; above the isolation level READ COMMITTED it may fail with a serialization failure
// (40001) instead of returning false. On SQLite, begin transactions as immediate, or make Reserve the
// first statement: a transaction that has read before can't wait for another one. After a failure,
// roll back and reply with 500, and the service retries the event.
func (d *SQLDeduper) Reserve(ctx context.Context, tx Execer, id string) (fresh bool, err error) {
	n, err := d.exec(ctx, tx, d.commit, id, d.now().UnixMicro())
	if err != nil {
		return false, fmt.Errorf("webhook: reserve event: %w", err)
	}
	return n == 1, nil
}

// Once runs effect in a transaction unless the event was handled before, and commits it together
// with the record of the event: [SQLDeduper.Reserve] with the transaction around it. It returns nil
// if the event is handled, now or before. If effect fails or panics, or the commit fails, the
// transaction is rolled back and Once returns the error: reply with 500. effect must do its work with
// tx and must not keep it.
func (d *SQLDeduper) Once(ctx context.Context, id string, effect func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("webhook: begin transaction: %w", err)
	}
	defer tx.Rollback()
	fresh, err := d.Reserve(ctx, tx, id)
	if err != nil || !fresh {
		return err
	}
	if err := effect(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("webhook: commit transaction: %w", err)
	}
	return nil
}

// Begin implements [Deduper]. While a running transaction has reserved the event with
// [SQLDeduper.Reserve], it waits for the end of that transaction.
func (d *SQLDeduper) Begin(ctx context.Context, id string) (State, error) {
	now := d.now()
	n, err := d.exec(ctx, d.db, d.begin, id, now.UnixMicro(), now.Add(-d.reservation).UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("webhook: begin event: %w", err)
	}
	if n == 1 {
		return Fresh, nil
	}
	var done int
	//nolint:gosec // G701: of the statement, only the table is not constant, and isTable has checked it
	err = d.db.QueryRowContext(ctx, d.state, id).Scan(&done)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("webhook: begin event: %w", err)
	case done != 0:
		return Done, nil
	}
	return Busy, nil // also without a row: the reservation was canceled just now
}

// Commit implements [Deduper].
func (d *SQLDeduper) Commit(ctx context.Context, id string) error {
	if _, err := d.exec(ctx, d.db, d.commit, id, d.now().UnixMicro()); err != nil {
		return fmt.Errorf("webhook: commit event: %w", err)
	}
	return nil
}

// Abort implements [Deduper].
func (d *SQLDeduper) Abort(ctx context.Context, id string) error {
	if _, err := d.exec(ctx, d.db, d.abort, id); err != nil {
		return fmt.Errorf("webhook: abort event: %w", err)
	}
	return nil
}

// Prune deletes events that were handled or reserved before that time, and returns their number.
// Call it regularly, for example for events older than a day: the service retries an event for 36
// minutes. It reads the whole table.
func (d *SQLDeduper) Prune(ctx context.Context, before time.Time) (int64, error) {
	result, err := d.db.ExecContext(ctx, d.prune, before.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("webhook: prune events: %w", err)
	}
	return result.RowsAffected()
}

// exec executes a statement with an identifier and returns the number of changed rows.
func (d *SQLDeduper) exec(ctx context.Context, db Execer, statement, id string, args ...any) (int64, error) {
	if err := checkEventID(id); err != nil {
		return 0, err
	}
	result, err := db.ExecContext(ctx, statement, append([]any{id}, args...)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
