package webhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// maxEventID is the length of the longest identifier that a table takes, in
// bytes. The service's have 36.
const maxEventID = 255

// SQLOptions are the optional settings of a [SQLDeduper]. nil means all
// defaults.
type SQLOptions struct {
	// Table is the name of the table: lower case letters, digits and
	// underscores, at most 63, not starting with a digit, and if need be the
	// same and a dot before it for the schema. Receivers that do different
	// things with the same events need a table each.
	// Defaults to "webhook_events".
	Table string

	// QuestionMarks has parameters written as ?, which SQLite understands,
	// instead of as $1, which Postgres does.
	// Defaults to false.
	QuestionMarks bool

	// Reservation is how long [SQLDeduper.Begin] reserves an event whose
	// handling neither succeeds nor fails. It should be longer than handling
	// takes. It must not be negative.
	// Defaults to 1 minute.
	Reservation time.Duration

	// Now tells the time. It may be called by several goroutines at once.
	// Defaults to [time.Now].
	Now func() time.Time
}

// An Execer executes statements in a transaction, as [sql.Tx] does, and what
// wraps it.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A SQLDeduper remembers events in a table of a database, for any number of
// processes. Make it with [NewSQLDeduper]. It works with Postgres, and with
// SQLite from version 3.24.
//
// It can be used in two ways, also both at once. [SQLDeduper.Once], and
// [SQLDeduper.Reserve] in a transaction of the caller's, make the event's effect
// in the same database happen exactly once. As a [Deduper] it takes transactions of its own, for
// effects that are elsewhere, and promises what a Deduper does.
//
// It is safe for concurrent use. Rows stay until [SQLDeduper.Prune].
type SQLDeduper struct {
	db          *sql.DB
	reservation time.Duration
	now         func() time.Time

	schema, begin, state, commit, abort, prune string
}

var _ Deduper = (*SQLDeduper)(nil)

// NewSQLDeduper returns a SQLDeduper for a table that [SQLDeduper.Schema]
// describes and that has to be there before events come. It does not touch the
// database, and never closes it. It fails when db is nil or an option is out of
// range.
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

// isTable tells whether name is one or two identifiers. A longer one would be
// cut off by Postgres, and could then be another's.
func isTable(name string) bool {
	return regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`).MatchString(name)
}

// prepare writes the statements. In quotes a name may be a reserved word, and
// being in lower case it is the same as without.
func (d *SQLDeduper) prepare(o SQLOptions) {
	pairs := []string{"TABLE", `"` + strings.ReplaceAll(o.Table, ".", `"."`) + `"`}
	if o.QuestionMarks {
		pairs = append(pairs, "$1", "?", "$2", "?", "$3", "?")
	}
	write := strings.NewReplacer(pairs...).Replace
	d.begin = write(`INSERT INTO TABLE AS e (id, done, changed_at) VALUES ($1, 0, $2)
ON CONFLICT (id) DO UPDATE SET changed_at = excluded.changed_at WHERE e.done = 0 AND e.changed_at <= $3`)
	d.state = write(`SELECT done FROM TABLE WHERE id = $1`)
	// A reservation is taken over, so that Begin, then Reserve, then Commit is a
	// way to handle one event.
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

// Reserve notes in the transaction tx that the event is handled, and tells
// whether it was fresh. If it was, the caller goes on with the event's effect in
// the same transaction and commits it; otherwise the effect is there already,
// and the answer is 200. The event is handled if and only if tx commits: a
// rollback makes it fresh again. A reservation by [SQLDeduper.Begin] does not
// count as handled.
//
// Two repetitions can come at the same time. On Postgres the second Reserve
// waits until the first's transaction ends; then it returns false if that was
// committed, and true if it was rolled back. Above the isolation level READ
// COMMITTED it fails in the first case with a serialization failure (40001). On
// SQLite only one transaction writes at a time: the second waits as long as
// busy_timeout says and fails with SQLITE_BUSY then. There, begin transactions
// as immediate, or make Reserve the first statement: one that has read before
// cannot wait. After a failure roll back and answer 500, and the service
// repeats the event.
//
// tx must not be the database itself: then the note is committed before the
// effect. Reserve fails for an identifier that is empty, not UTF-8, contains a
// zero byte or is longer than 255 bytes.
func (d *SQLDeduper) Reserve(ctx context.Context, tx Execer, id string) (fresh bool, err error) {
	n, err := d.exec(ctx, tx, d.commit, id, d.now().UnixMicro())
	if err != nil {
		return false, fmt.Errorf("webhook: reserve event: %w", err)
	}
	return n == 1, nil
}

// Once runs effect in a transaction unless the event was handled before, and
// commits it together with the note that it is handled: [SQLDeduper.Reserve] with
// the transaction around it. It returns nil when the event is handled, now or
// before. When effect fails or panics, or the commit fails, the transaction is
// rolled back and nothing is noted; the error is what they returned, and the
// answer is 500. A commit whose outcome is unknown, since the connection broke,
// fails as well: the repetition finds out.
//
// effect must do its work with tx and not keep it. The transaction has the
// database's default isolation; what Reserve says of repetitions that come at
// the same time holds here.
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

// Begin is described at [Deduper]. While an unfinished transaction has reserved
// the event with [SQLDeduper.Reserve], it waits for its end.
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
	case errors.Is(err, sql.ErrNoRows):
		// Given back just now. The next repetition finds it fresh.
		return Busy, nil
	case err != nil:
		return 0, fmt.Errorf("webhook: begin event: %w", err)
	case done != 0:
		return Done, nil
	default:
		return Busy, nil
	}
}

// Commit is described at [Deduper].
func (d *SQLDeduper) Commit(ctx context.Context, id string) error {
	if _, err := d.exec(ctx, d.db, d.commit, id, d.now().UnixMicro()); err != nil {
		return fmt.Errorf("webhook: commit event: %w", err)
	}
	return nil
}

// Abort is described at [Deduper].
func (d *SQLDeduper) Abort(ctx context.Context, id string) error {
	if _, err := d.exec(ctx, d.db, d.abort, id); err != nil {
		return fmt.Errorf("webhook: abort event: %w", err)
	}
	return nil
}

// Prune forgets what was handled or reserved before that time, and returns how
// many events it was. Call it now and then; a day ago is a good time, since the
// service repeats an event for 36 minutes by itself. It reads the whole table.
func (d *SQLDeduper) Prune(ctx context.Context, before time.Time) (int64, error) {
	result, err := d.db.ExecContext(ctx, d.prune, before.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("webhook: prune events: %w", err)
	}
	return result.RowsAffected()
}

// exec checks the identifier, executes a statement about it and returns how many
// rows it changed.
func (d *SQLDeduper) exec(ctx context.Context, db Execer, statement, id string, args ...any) (int64, error) {
	switch {
	case id == "":
		return 0, errors.New("identifier is empty")
	case len(id) > maxEventID:
		return 0, fmt.Errorf("identifier of %d bytes, the limit is %d", len(id), maxEventID)
	case !utf8.ValidString(id) || strings.Contains(id, "\x00"):
		return 0, errors.New("identifier is not text")
	}
	result, err := db.ExecContext(ctx, statement, append([]any{id}, args...)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
