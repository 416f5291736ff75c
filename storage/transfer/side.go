package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// A side is a database of a copy: a store, which isn't migrated, and a connection of its own, whose transaction holds a lock
// on all tables.
type side struct {
	path  string // of a SQLite file; "" for Postgres
	place string // without a password
	store interface {
		formsvc.Store
		Migrate(ctx context.Context) error
		Migrations(ctx context.Context) ([]storage.Migration, error)
		storage.Database
		Close() error
	}
	db   *sql.DB
	conn *sql.Conn
}

func openSide(ctx context.Context, dsn string, ring *keyring.Keyring) (s *side, err error) {
	s = new(side)
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		if s.path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		s.place = "sqlite:" + s.path
		if s.store, err = sqlite.Open(ctx, path, &sqlite.Options{SkipMigrations: true, Keyring: ring}); err != nil {
			return nil, err
		}
		s.db, err = sql.Open("sqlite", sqlite.DSN(s.path))
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
	if err == nil {
		s.conn, err = s.db.Conn(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

func (s *side) close() error {
	_ = s.exec(context.Background(), "ROLLBACK") // fails if there is no transaction
	return errors.Join(s.conn.Close(), s.db.Close(), s.store.Close())
}

func (s *side) exec(ctx context.Context, statement string, args ...any) error {
	if s.path == "" {
		statement = bunstore.Rebinder()(statement)
	}
	_, err := s.conn.ExecContext(ctx, statement, args...)
	return err
}

// checkSource checks the schema of the source, and that the keys of its secrets are there.
func (s *side) checkSource(ctx context.Context) error {
	steps, err := s.store.Migrations(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.place, err)
	}
	for _, step := range steps {
		if step.AppliedAt.IsZero() {
			return fmt.Errorf("%s doesn't have the schema of this release: start a server on it once, or run \"formsvc migrate up\"", s.place)
		}
	}
	return s.store.CheckKeys(ctx)
}

// lockTables locks every table of formsvc against writes. It waits for transactions under way.
const lockTables = `SET LOCAL lock_timeout = '10s';
DO $do$ DECLARE t regclass; BEGIN
  FOR t IN ` + allTables + ` LOOP EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t); END LOOP;
END $do$`

const allTables = `SELECT c.oid::regclass FROM pg_class AS c
  WHERE c.relnamespace = (SELECT i.relnamespace FROM pg_class AS i WHERE i.oid = 'formsvc_identity'::regclass)
    AND c.relkind IN ('r', 'p') AND c.relname LIKE 'formsvc\_%' ORDER BY c.relname`

// lock begins the transaction. Others can't write until it ends.
func (s *side) lock(ctx context.Context) error {
	begin := []string{"BEGIN EXCLUSIVE"}
	if s.path == "" {
		begin = []string{"BEGIN", lockTables}
	}
	for _, statement := range begin {
		if err := s.exec(ctx, statement); err != nil {
			return fmt.Errorf("lock %s, which a server or another program may be using: %w", s.place, err)
		}
	}
	return nil
}

func (s *side) state(ctx context.Context) (bunstore.State, error) {
	return bunstore.ReadState(ctx, s.conn)
}

func (s *side) setState(ctx context.Context, state bunstore.State) error {
	return s.exec(ctx, "UPDATE formsvc_identity SET identity = ?, state = ?, peer = ?, since = ? WHERE id = 1",
		state.Identity, state.State, state.Peer, state.Since)
}

// prepare migrates and locks the target, which must be empty.
func (s *side) prepare(ctx context.Context) error {
	if err := s.store.Migrate(ctx); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	if err := state.Refuse(); err != nil {
		return err
	}
	for _, t := range tables() {
		var full bool
		if err := s.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.name+")").Scan(&full); err != nil {
			return err
		}
		if full {
			return fmt.Errorf("%w: %s has rows in %s; a copy needs a new database, and writes over nothing", ErrNotEmpty, s.place, t.name)
		}
	}
	if s.path == "" { // rebuild counts the responses
		return s.exec(ctx, "ALTER TABLE formsvc_responses DISABLE TRIGGER formsvc_responses_made")
	}
	return nil
}

// each calls do with every row of a table, in the order of the feed if it is that of the events. do may keep the row.
func (s *side) each(ctx context.Context, t *table, do func(row []any) error) (err error) {
	columns, order := strings.Join(t.names, ", "), ""
	if t.name == "formsvc_events" {
		order = " ORDER BY xact, seq"
		if s.path != "" {
			columns = strings.Replace(columns, "xact, seq", "seq AS xact, 0 AS seq", 1)
			order = " ORDER BY formsvc_events.seq"
		}
	}
	rows, err := s.conn.QueryContext(ctx, "SELECT "+columns+" FROM "+t.name+order) //nolint:gosec // names of our tables and columns
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	into := make([]any, len(t.names))
	for rows.Next() {
		row := make([]any, len(t.names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range row {
			switch v := v.(type) {
			case bool:
				row[i] = map[bool]int64{true: 1}[v]
			case []byte:
				row[i] = append([]byte{}, v...) // a driver may return nil for an empty value
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sums returns the sums of all tables.
func (s *side) sums(ctx context.Context) ([]sum, error) {
	list := tables()
	sums := make([]sum, len(list))
	for i := range list {
		t := &list[i]
		if err := s.each(ctx, t, func(row []any) error { sums[i].add(t, row); return nil }); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return sums, nil
}

// insert writes rows.
func (s *side) insert(ctx context.Context, t *table, rows [][]any) error {
	if s.path == "" {
		return s.conn.Raw(func(driver any) error {
			pg, ok := driver.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("the driver is a %T", driver)
			}
			for _, row := range rows {
				for i, v := range row {
					if n, ok := v.(int64); ok && t.bools[i] {
						row[i] = n != 0
					}
				}
			}
			_, err := pg.Conn().CopyFrom(ctx, pgx.Identifier{t.name}, t.names, pgx.CopyFromRows(rows))
			return err
		})
	}
	names := t.names
	if t.name == "formsvc_events" {
		var err error
		if names, rows, err = s.numbered(ctx, t, rows); err != nil {
			return err
		}
	}
	insert, err := s.conn.PrepareContext(ctx, "INSERT INTO "+t.name+" ("+strings.Join(names, ", ")+") VALUES (?"+strings.Repeat(", ?", len(names)-1)+")") //nolint:gosec // as above
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for _, row := range rows {
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns events with the numbers that they get in SQLite: in the same order, and none before its position in the
// other feed, so that a reader with a cursor from there may read some again but misses none.
func (s *side) numbered(ctx context.Context, t *table, rows [][]any) (names []string, events [][]any, err error) {
	var last int64
	if err := s.conn.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM formsvc_events").Scan(&last); err != nil {
		return nil, nil, err
	}
	xact, seq := t.index("xact"), t.index("seq")
	drop := func(list []any) []any { return append(list[:xact:xact], list[seq:]...) }
	for _, name := range t.names {
		if name != "xact" {
			names = append(names, name)
		}
	}
	for _, row := range rows {
		commit, ok := row[xact].(int64)
		if !ok {
			return nil, nil, errors.New("an event without a position")
		}
		last = max(last+1, commit)
		event := drop(row)
		event[xact] = last // where seq is now
		events = append(events, event)
	}
	return names, events, nil
}

// lastPosition returns a position of the feed that no event is after.
func (s *side) lastPosition(ctx context.Context) (last int64, err error) {
	query := "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'formsvc_events'"
	if s.path == "" {
		query = `SELECT greatest((SELECT max(xact) FROM formsvc_events), pg_snapshot_xmax(pg_current_snapshot())::text::bigint + "offset")
			FROM formsvc_feed WHERE id = 1`
	}
	err = s.conn.QueryRowContext(ctx, query).Scan(&last)
	return last, err
}

// rebuild makes the counters, and lets the feed go on after last.
func (s *side) rebuild(ctx context.Context, last int64) error {
	if err := s.exec(ctx, "INSERT INTO formsvc_counters (campaign_id, shard, responses) "+
		"SELECT campaign_id, 0, count(*) FROM formsvc_responses GROUP BY campaign_id"); err != nil {
		return err
	}
	const statuses = "INSERT INTO formsvc_statuses (campaign_id, status, responses) " +
		"SELECT campaign_id, status, count(*) FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status"
	if s.path != "" {
		return errors.Join(
			s.exec(ctx, "DELETE FROM formsvc_statuses"), s.exec(ctx, statuses),
			s.exec(ctx, "INSERT INTO sqlite_sequence (name, seq) SELECT 'formsvc_events', 0 "+
				"WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'formsvc_events')"),
			s.exec(ctx, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'formsvc_events'", last))
	}
	return errors.Join(
		s.exec(ctx, strings.NewReplacer("status, responses)", "status, shard, responses)", "status, count", "status, 0, count").Replace(statuses)),
		s.exec(ctx, "ALTER TABLE formsvc_responses ENABLE TRIGGER formsvc_responses_made"),
		s.exec(ctx, fmt.Sprintf(`UPDATE formsvc_feed SET "offset" = greatest("offset", %d + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
			WHERE id = 1`, last)))
}

// leave marks the source as moved, blocks all writes to it, also of running servers, and commits. The mark itself stays
// readable and writable, so that a server that starts says why it doesn't.
func (s *side) leave(ctx context.Context, state bunstore.State) error {
	if err := s.setState(ctx, state); err != nil {
		return err
	}
	if s.path == "" {
		if err := s.exec(ctx, `CREATE OR REPLACE FUNCTION formsvc_fence() RETURNS trigger LANGUAGE plpgsql AS $fence$
BEGIN RAISE EXCEPTION 'the data was moved to another database' USING ERRCODE = 'MV001'; END $fence$;
DO $do$ DECLARE t regclass; BEGIN
  FOR t IN `+allTables+` LOOP
    CONTINUE WHEN t = 'formsvc_identity'::regclass;
    EXECUTE format('CREATE TRIGGER formsvc_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
      'FOR EACH STATEMENT EXECUTE FUNCTION formsvc_fence()', t);
  END LOOP;
END $do$`); err != nil {
			return err
		}
		return s.exec(ctx, "COMMIT")
	}
	list, err := bunstore.Strings(ctx, s.conn, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'formsvc\_%' ESCAPE '\' AND name <> 'formsvc_identity'`)
	if err != nil {
		return err
	}
	for _, name := range list {
		for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
			if err := s.exec(ctx, "CREATE TRIGGER formsvc_fence_"+name+"_"+change+" BEFORE "+change+" ON "+name+
				" BEGIN SELECT RAISE(ABORT, 'the data was moved to another database'); END"); err != nil {
				return err
			}
		}
	}
	return s.exec(ctx, "COMMIT")
}
