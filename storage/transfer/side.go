package transfer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A side is a database of a copy: a store, which isn't migrated, and a connection of its own, whose transaction holds a lock
// on all tables that are copied.
type side struct {
	sqlite bool
	place  string // without a password
	store  interface {
		formsvc.Store
		storage.Database
		Migrate(ctx context.Context) error
		Close() error
	}
	db     *sql.DB
	conn   *sql.Conn
	tables []*table
}

func openSide(ctx context.Context, dsn string, ring *keyring.Keyring) (s *side, err error) {
	s = new(side)
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		s.sqlite, s.place = true, "sqlite:"+path
		if s.store, err = sqlite.Open(ctx, path, &sqlite.Options{SkipMigrations: true, Keyring: ring}); err != nil {
			return nil, err
		}
		s.db, _ = sql.Open("sqlite", sqlite.DSN(path)) // never fails with a known driver
	} else {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, errors.New("a database is sqlite:PATH or postgres://USER@HOST/NAME") // the error may repeat the password
		}
		s.place = fmt.Sprintf("postgres://%s@%s:%d/%s", cfg.User, cfg.Host, cfg.Port, cfg.Database)
		if s.store, err = postgres.Open(ctx, dsn, &postgres.Options{SkipMigrations: true, Keyring: ring}); err != nil {
			return nil, err
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
		s.db = stdlib.OpenDB(*cfg)
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// close also rolls back a transaction.
func (s *side) close() error {
	return errors.Join(s.conn.Close(), s.db.Close(), s.store.Close())
}

// exec runs statements, up to the first that fails.
func (s *side) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// lock begins a transaction. Others can't write to the tables until it ends.
func (s *side) lock(ctx context.Context) error {
	begin := []string{"BEGIN EXCLUSIVE"}
	if !s.sqlite {
		var names []string
		for _, name := range tables() {
			names = append(names, "formsvc_"+name)
		}
		begin = []string{"BEGIN", "SET LOCAL lock_timeout = '10s'", "LOCK TABLE " + strings.Join(names, ", ") + " IN SHARE ROW EXCLUSIVE MODE"}
	}
	if err := s.exec(ctx, begin...); err != nil {
		return fmt.Errorf("lock %s, which a server or another program may be using: %w", s.place, err)
	}
	return nil
}

// prepare migrates and locks the target, which must be empty.
func (s *side) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.store.Migrate, s.store.Ping, s.lock} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var full bool // other rows would make a difference at the end
	err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM formsvc_accounts)").Scan(&full)
	switch {
	case err != nil:
		return err
	case full:
		return fmt.Errorf("%w: %s has accounts; a copy needs a new database, and writes over nothing", ErrNotEmpty, s.place)
	case s.sqlite:
		return nil
	}
	// rebuild counts the responses.
	return s.exec(ctx, "ALTER TABLE formsvc_responses DISABLE TRIGGER formsvc_responses_made")
}

// rows yields every row of a table, with identifiers as 16 bytes, and adds it to a sum. Events come in the order of the feed. The caller may keep and change
// a row.
func (s *side) rows(ctx context.Context, t *table, sum *sum) iter.Seq2[[]any, error] {
	columns, order := slices.Clone(t.names), ""
	if xact := slices.Index(columns, "xact"); xact >= 0 {
		order = " ORDER BY xact, seq"
		if s.sqlite {
			columns[xact], columns[slices.Index(columns, "seq")], order = "seq AS xact", "0 AS seq", " WHERE id <> "+sqlite.Anchor+" ORDER BY xact"
		}
	}
	return func(yield func([]any, error) bool) {
		rows, err := s.conn.QueryContext(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+t.name+order) //nolint:gosec // names of our tables and columns
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = rows.Close() }()
		types, err := rows.ColumnTypes()
		if err != nil {
			yield(nil, err)
			return
		}
		into := make([]any, len(t.names))
		for rows.Next() {
			row := make([]any, len(t.names))
			for i := range row {
				into[i] = &row[i]
			}
			err := rows.Scan(into...)
			for i, v := range row {
				switch v := v.(type) {
				case string:
					if id, err := uuid.Parse(v); err == nil && types[i].DatabaseTypeName() == "UUID" {
						row[i] = id[:]
					}
				case bool:
					row[i] = map[bool]int64{true: 1}[v]
				case []byte:
					row[i] = append([]byte{}, v...) // a driver may return nil for an empty value
				}
			}
			sum.add(t, row)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// sums returns the sums of all tables.
func (s *side) sums(ctx context.Context) ([]sum, error) {
	sums := make([]sum, len(s.tables))
	for i, t := range s.tables {
		for _, err := range s.rows(ctx, t, &sums[i]) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return sums, nil
}

// insert writes rows.
func (s *side) insert(ctx context.Context, t *table, rows iter.Seq2[[]any, error]) error {
	if s.sqlite {
		return s.insertSQLite(ctx, t, rows)
	}
	return s.conn.Raw(func(driver any) error {
		next, stop := iter.Pull2(rows)
		defer stop()
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{t.name}, t.names, pgx.CopyFromFunc(func() ([]any, error) {
			row, err, _ := next()
			for i, v := range row {
				if n, ok := v.(int64); ok && t.bools[i] {
					row[i] = n != 0
				}
			}
			return row, err
		}))
		return err
	})
}

// insertSQLite writes rows. Events get numbers in the same order, and none before its position in the other feed, so that a
// reader with a cursor from there may read some again but misses none.
func (s *side) insertSQLite(ctx context.Context, t *table, rows iter.Seq2[[]any, error]) error {
	names, xact, seq, last := slices.Clone(t.names), slices.Index(t.names, "xact"), slices.Index(t.names, "seq"), int64(0)
	if xact >= 0 {
		names[xact] = "seq"
		names = slices.Delete(names, seq, seq+1)
	}
	insert, err := s.conn.PrepareContext(ctx, "INSERT INTO "+t.name+" ("+strings.Join(names, ", ")+ //nolint:gosec // as above
		") VALUES (?"+strings.Repeat(", ?", len(names)-1)+")")
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for row, err := range rows {
		if err != nil {
			return err
		}
		if xact >= 0 {
			position, _ := row[xact].(int64)
			last = max(last+1, position)
			row[xact] = last
			row = slices.Delete(row, seq, seq+1)
		}
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

// lastPosition returns a position of the feed that no event is after.
func (s *side) lastPosition(ctx context.Context) (last int64, err error) {
	query := "SELECT coalesce(max(seq), 0) FROM formsvc_events"
	if !s.sqlite {
		query = `SELECT greatest((SELECT max(xact) FROM formsvc_events), pg_snapshot_xmax(pg_current_snapshot())::text::bigint + "offset")
			FROM formsvc_feed WHERE id = 1`
	}
	err = s.conn.QueryRowContext(ctx, query).Scan(&last)
	return last, err
}

// rebuild makes the counters, and lets the feed go on after last.
func (s *side) rebuild(ctx context.Context, last int64) error {
	const counters = "INSERT INTO formsvc_counters (campaign_id, shard, responses) SELECT campaign_id, 0, count(*) FROM formsvc_responses GROUP BY campaign_id"
	const statuses = "INSERT INTO formsvc_statuses (campaign_id, status, %sresponses) SELECT campaign_id, status, %scount(*) " +
		"FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status"
	if s.sqlite {
		return s.exec(ctx, counters, fmt.Sprintf(statuses, "", ""),
			sqlite.MoveFeed(strconv.FormatInt(last, 10)))
	}
	return s.exec(ctx, counters, fmt.Sprintf(statuses, "shard, ", "0, "),
		"ALTER TABLE formsvc_responses ENABLE TRIGGER formsvc_responses_made",
		fmt.Sprintf(`UPDATE formsvc_feed SET "offset" = greatest("offset", %d + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint)`, last))
}

// fence marks the source as moved to another place, and blocks writes to it, also of running servers. The mark itself stays
// readable, so that a server that starts says why it doesn't.
func (s *side) fence(ctx context.Context, place string) error {
	statements := []string{fmt.Sprintf("UPDATE formsvc_identity SET state = 'moved', peer = '%s', since = %d",
		strings.ReplaceAll(place, "'", "''"), time.Now().UnixMicro())}
	if !s.sqlite {
		statements = append(statements, "CREATE OR REPLACE FUNCTION formsvc_fence() RETURNS trigger LANGUAGE plpgsql AS "+
			"$$ BEGIN RAISE EXCEPTION 'the data was moved to another database' USING ERRCODE = 'MV001'; END $$")
	}
	for _, t := range s.tables {
		if !s.sqlite {
			statements = append(statements, "CREATE TRIGGER formsvc_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON "+t.name+
				" FOR EACH STATEMENT EXECUTE FUNCTION formsvc_fence()")
			continue
		}
		for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
			statements = append(statements, fmt.Sprintf("CREATE TRIGGER %s_fence_%s BEFORE %[2]s ON %[1]s "+
				"BEGIN SELECT RAISE(ABORT, 'the data was moved to another database'); END", t.name, change))
		}
	}
	return s.exec(ctx, statements...)
}

// A table is what is copied of a table.
type table struct {
	name  string
	names []string // of its columns, sorted, so that they are in the same order in each database
	bools []bool   // which of them Postgres has as boolean
}

// tables returns the names of the tables that are copied, without prefix, parents first. Those about the database itself,
// sign-in links, sessions, and counters are not. A test compares them with the schema.
func tables() []string {
	return []string{
		"accounts", "keys", "members", "campaigns", "webhooks", "responses", "files", "comments", "signatures", "places", "events", "deliveries", "attempts",
		"notices", "failing", "idempotency", "quota", "audit",
	}
}

// describe reads the columns of the tables. Rows of SQLite have numbers of their own, which are only kept for events:
// there they are the position, which Postgres has in two columns.
func (s *side) describe(ctx context.Context) error {
	for _, name := range tables() {
		t := &table{name: "formsvc_" + name}
		kinds, err := s.columns(ctx, t.name)
		if err != nil {
			return err
		}
		if s.sqlite && name == "events" {
			kinds["xact"] = ""
		} else if s.sqlite {
			delete(kinds, "seq")
		}
		for _, column := range slices.Sorted(maps.Keys(kinds)) {
			t.names, t.bools = append(t.names, column), append(t.bools, kinds[column] == "BOOL")
		}
		s.tables = append(s.tables, t)
	}
	return nil
}

// columns returns the types of a table's columns.
func (s *side) columns(ctx context.Context, table string) (map[string]string, error) {
	rows, err := s.conn.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0") //nolint:gosec // names of our tables
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	kinds := make(map[string]string, len(types))
	for _, c := range types {
		kinds[c.Name()] = c.DatabaseTypeName()
	}
	return kinds, errors.Join(err, rows.Err())
}

// A sum is a checksum of the rows of a table, in any order: the sums of the four words of their SHA-256.
type sum struct {
	rows int64
	hash [4]uint64
}

// add adds a row, without the numbers of an event: they differ between two databases that have the same data.
func (s *sum) add(t *table, row []any) {
	kept := slices.Clone(row)
	for i, name := range t.names {
		if name == "xact" || name == "seq" {
			kept[i] = nil
		}
	}
	b, _ := json.Marshal(kept) // a column is a number, a text or bytes in each database
	digest := sha256.Sum256(b)
	s.rows++
	for i := range s.hash {
		s.hash[i] += binary.LittleEndian.Uint64(digest[i*8:])
	}
}
