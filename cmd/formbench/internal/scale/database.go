package scale

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
	"github.com/formsvc/toolkit/formsvc"
)

// writer opens the database for filling.
func (in *installation) writer(ctx context.Context) (recordWriter, error) {
	if path, ok := strings.CutPrefix(in.DSN, "sqlite:"); ok {
		return newStuffer(ctx, path)
	}
	return newCopier(ctx, in.DSN)
}

// run runs statements one after the other.
func (in *installation) run(ctx context.Context, statements ...string) error {
	return in.Use(func(db *sql.DB) error {
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

// begin keeps the database from counting responses one by one.
func (in *installation) begin(ctx context.Context) error {
	if in.store == bench.SQLiteStore {
		return nil // the program counts there
	}
	return in.run(ctx, "ALTER TABLE formsvc_responses DISABLE TRIGGER USER")
}

// finish counts the responses, and runs now the maintenance that the database would soon do by itself.
func (in *installation) finish(ctx context.Context) error {
	const (
		counters = "INSERT INTO formsvc_counters (campaign_id, shard, responses) " +
			"SELECT campaign_id, 0, count(*) FROM formsvc_responses GROUP BY campaign_id"
		moved = "FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status"
	)
	if in.store == bench.SQLiteStore {
		return in.run(ctx, counters, "INSERT INTO formsvc_statuses (campaign_id, status, responses) "+
			"SELECT campaign_id, status, count(*) "+moved)
	}
	return in.run(ctx, counters, "INSERT INTO formsvc_statuses (campaign_id, status, shard, responses) "+
		"SELECT campaign_id, status, 0, count(*) "+moved,
		"ALTER TABLE formsvc_responses ENABLE TRIGGER USER", "VACUUM (ANALYZE)")
}

// sizes returns the sizes of the tables that grow with the responses, without indexes, and of their indexes.
func (in *installation) sizes(ctx context.Context) (list []result.Cell, err error) {
	err = in.Use(func(db *sql.DB) (err error) {
		query := postgresSizes
		if in.store == bench.SQLiteStore {
			query = sqliteSizes
		}
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var table, index string
			var bytes float64
			if err := rows.Scan(&table, &index, &bytes); err != nil {
				return err
			}
			key := result.Key{Part: bench.SizesPart, What: strings.TrimSuffix(table+", "+index, ", "), Store: in.store, Size: in.n}
			list = append(list, result.Cell{Key: key, Round: 1, Figures: []result.Figure{{Unit: "MB", Value: bytes / 1e6}}})
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("sizes: %w", err)
	}
	return list, in.perRow(ctx, list)
}

// perRow counts the rows, once for each table.
func (in *installation) perRow(ctx context.Context, list []result.Cell) error {
	return in.Use(func(db *sql.DB) error {
		counts := make(map[string]float64)
		for i := range list {
			c := &list[i]
			table, _, _ := strings.Cut(c.What, ",")
			n, ok := counts[table]
			if !ok {
				if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
					return fmt.Errorf("count %s: %w", table, err)
				}
				counts[table] = n
			}
			c.Add("rows", n)
			c.Add("bytes/row", c.Figures[0].Value*1e6/max(n, 1))
		}
		return nil
	})
}

// A copier stores records with COPY.
type copier struct{ *pgxpool.Pool }

func newCopier(ctx context.Context, dsn string) (*copier, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the database is not valid") // the error may contain a password
	}
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	return &copier{pool}, err
}

// Close implements recordWriter.
func (c *copier) Close() error {
	c.Pool.Close()
	return nil
}

// positionQuery is the expression for the positions that the product gives the events of a transaction.
const positionQuery = `SELECT pg_current_xact_id()::text::bigint + f."offset" FROM formsvc_feed AS f`

func (c *copier) write(ctx context.Context, records []record) error {
	return pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		var position int64
		if err := tx.QueryRow(ctx, positionQuery).Scan(&position); err != nil {
			return err
		}
		for _, t := range copied(records, position, binaryID) {
			if len(t.rows) == 0 {
				continue
			}
			columns := strings.Fields(t.columns)
			if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.table}, columns, pgx.CopyFromRows(t.rows)); err != nil {
				return fmt.Errorf("%s: %w", t.table, err)
			}
		}
		return nil
	})
}

// A copiedTable has rows of a table.
type copiedTable struct {
	table, columns string
	rows           [][]any
}

// copied returns the records as rows, with identifiers as the store keeps them.
func copied(records []record, position int64, uuid func(formsvc.ID) any) []copiedTable {
	responses, events := make([][]any, len(records)), make([][]any, len(records))
	var deliveries, attempts [][]any
	for i := range records {
		r := &records[i]
		id, account, campaign, event := uuid(r.ID), uuid(r.AccountID), uuid(r.CampaignID), uuid(r.event.ID)
		responses[i] = []any{
			id, account, campaign, r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName, r.Answers.JSON(),
			r.Version, r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(), r.CompletedAt.UnixMicro(), string(r.event.ID),
		}
		at, size := r.event.CreatedAt.UnixMicro(), len(r.event.Payload)
		events[i] = []any{event, account, campaign, id, createdBit(), at, r.event.Payload, position}
		r.deliveries(func(d *deliveryRow) {
			delivery := uuid(formsvc.DeliveryID(r.event.ID, d.hook))
			deliveries = append(deliveries, []any{
				uuid(d.hook), delivery, event, createdBit(), d.due, d.lease, at, d.updated, size, 0, d.state, d.attempts,
			})
			if d.attempts > 0 {
				start, took := r.attempted()
				attempts = append(attempts, []any{delivery, 1, start.UnixMicro(), took.Microseconds(), 200, "", []byte{}})
			}
		})
	}
	return []copiedTable{
		{"formsvc_responses", "id account_id campaign_id reference status email first_name last_name answers version " +
			"created_at updated_at completed_at events", responses},
		{"formsvc_events", "id account_id campaign_id response_id type created_at payload xact", events},
		{"formsvc_deliveries", "webhook_id id event_id event_type due_at lease created_at updated_at size kind state attempts", deliveries},
		{"formsvc_attempts", "delivery_id number started_at duration status error answer", attempts},
	}
}

// binaryID returns the bytes of an identifier.
func binaryID(id formsvc.ID) any {
	var b [16]byte
	_, _ = hex.Decode(b[:], []byte(strings.ReplaceAll(string(id), "-", ""))) // an ID is canonical
	return b
}

// postgresSizes returns the tables and indexes with their bytes.
const postgresSizes = `
SELECT t.relname, coalesce(i.relname, ''), CASE WHEN i.oid IS NULL THEN pg_table_size(t.oid) ELSE pg_relation_size(i.oid) END
FROM pg_class AS t LEFT JOIN LATERAL (
  SELECT NULL::oid AS oid, NULL::name AS relname UNION ALL
  SELECT c.oid, c.relname FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indexrelid WHERE x.indrelid = t.oid
) AS i ON true
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
  AND t.relname IN ('formsvc_responses', 'formsvc_events', 'formsvc_deliveries', 'formsvc_attempts')
ORDER BY t.relname, i.relname NULLS FIRST`

// A stuffer stores records in an SQLite file that nobody else has open. It uses no journal, because a partly filled
// file is removed.
type stuffer struct {
	mu      sync.Mutex
	db      *sql.DB
	conn    *sql.Conn
	inserts []*sql.Stmt // by table
}

func newStuffer(ctx context.Context, path string) (_ *stuffer, err error) {
	s := &stuffer{}
	s.db, err = sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=cache_size(-1000000)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, err
	}
	for _, t := range copied(nil, 0, nil) {
		columns := t.shared()
		query := "INSERT INTO " + t.table + " (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")" //nolint:gosec // constants
		insert, err := s.conn.PrepareContext(ctx, query)                                                                                     //nolint:sqlclosecheck // it closes with the connection
		if err != nil {
			return nil, err
		}
		s.inserts = append(s.inserts, insert)
	}
	return s, nil
}

// shared are the columns that both stores have. Only Postgres has the last column of events.
func (t *copiedTable) shared() []string {
	return strings.Fields(strings.TrimSuffix(t.columns, " xact"))
}

// Close implements recordWriter.
func (s *stuffer) Close() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.db.Close())
}

func (s *stuffer) write(ctx context.Context, records []record) error {
	tables := copied(records, 0, func(id formsvc.ID) any { return string(id) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	for i, t := range tables {
		n := len(t.shared())
		for _, row := range t.rows {
			if _, err := s.inserts[i].ExecContext(ctx, row[:n]...); err != nil {
				return fmt.Errorf("%s: %w", t.table, err)
			}
		}
	}
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	return err
}

// sqliteSizes returns the tables and indexes with their bytes.
const sqliteSizes = `
SELECT m.tbl_name, CASE WHEN m.type = 'index' THEN m.name ELSE '' END,
  (SELECT sum(s.pgsize) FROM dbstat AS s WHERE s.name = m.name AND s.aggregate = 1)
FROM sqlite_schema AS m WHERE m.type IN ('table', 'index') AND m.rootpage > 0
  AND m.tbl_name IN ('formsvc_responses', 'formsvc_events', 'formsvc_deliveries', 'formsvc_attempts')
ORDER BY m.tbl_name, m.type DESC, m.name`
