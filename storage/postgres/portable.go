package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Portable is for package transfer.
func (s *Store) Portable() bunstore.Portable { return portable{s} }

type portable struct{ s *Store }

// placeOf returns the address of a database without a password.
func placeOf(cfg *pgx.ConnConfig) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(cfg.User), Path: "/" + cfg.Database,
		Host: net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))),
	}
	if path := cfg.RuntimeParams["search_path"]; path != "" {
		u.RawQuery = url.Values{"search_path": {path}}.Encode()
	}
	return u.String()
}

func (p portable) Place() string {
	if p.s.place == "" {
		return "a Postgres database"
	}
	return p.s.place
}

func (portable) Kind() string                       { return "postgres" }
func (portable) TablesTo(string) []bunstore.Table   { return bunstore.Tables() }
func (portable) TablesFrom(string) []bunstore.Table { return bunstore.Tables() }
func (p portable) Classify(err error) error         { return p.s.backend.Classify(err) }
func (portable) Rebind(query string) string         { return bunstore.Rebinder()(query) }

// Param returns a placeholder cast to a type that indexes of the column use.
func (portable) Param(k bunstore.Kind) string {
	return "?" + map[bunstore.Kind]string{
		bunstore.UUID: "::text::uuid", bunstore.Text: "::text", bunstore.Int: "::bigint", bunstore.Bool: "::boolean", bunstore.Bytes: "::bytea",
	}[k]
}

func (p portable) Versions(ctx context.Context) (has, knows int, err error) {
	list, err := migrations()
	if err != nil {
		return 0, 0, err
	}
	has, err = bunstore.Version(ctx, p.s.db, schemaExists)
	return has, len(list), err
}

// Read allows sequential scans, which are disabled for requests.
func (p portable) Read(ctx context.Context, do func(c bun.IConn) error) error {
	tx := *p.s.tx
	tx.Begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	return unlimited(ctx, &tx, func(ctx context.Context, c bun.IConn) error {
		if _, err := c.ExecContext(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on"); err != nil {
			return err
		}
		return do(c)
	})
}

// Write runs do on the connection of its transaction, for COPY.
func (p portable) Write(ctx context.Context, do func(c bun.IConn) error) error {
	return p.s.tx.Retried(func() error {
		return unlimited(ctx, p.s.tx, func(_ context.Context, c bun.IConn) error { return do(c) })
	})
}

// Insert sends all rows with one COPY, which keeps the numbers of events.
func (portable) Insert(ctx context.Context, c bun.IConn, t *bunstore.Table, rows [][]any) error {
	conn, ok := c.(*sql.Conn)
	if !ok {
		return fmt.Errorf("postgres: a %T can't copy", c)
	}
	names := make([]string, len(t.Columns))
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
	}
	var data []byte
	for _, row := range rows {
		data = appendCopied(data, t, row)
	}
	return conn.Raw(func(driver any) error {
		pg, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("postgres: the driver is a %T", driver)
		}
		_, err := pg.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(data),
			"COPY "+t.Name+" ("+strings.Join(names, ", ")+") FROM STDIN")
		return err
	})
}

// appendCopied appends a row in the text format of COPY.
func appendCopied(data []byte, t *bunstore.Table, row []any) []byte {
	for i, v := range row {
		if i > 0 {
			data = append(data, '\t')
		}
		switch v := v.(type) {
		case nil:
			data = append(data, `\N`...)
		case int64:
			if t.Columns[i].Kind == bunstore.Bool {
				data = strconv.AppendBool(data, v != 0)
			} else {
				data = strconv.AppendInt(data, v, 10)
			}
		case []byte:
			data = hex.AppendEncode(append(data, `\\x`...), v)
		case string:
			data = appendText(data, v)
		}
	}
	return append(data, '\n')
}

func appendText(data []byte, text string) []byte {
	for {
		i := strings.IndexAny(text, "\\\t\n\r")
		if i < 0 {
			return append(data, text...)
		}
		data = append(append(data, text[:i]...), '\\')
		switch text[i] {
		case '\t':
			data = append(data, 't')
		case '\n':
			data = append(data, 'n')
		case '\r':
			data = append(data, 'r')
		default:
			data = append(data, '\\')
		}
		text = text[i+1:]
	}
}

// LastPosition returns a position of a transaction that hasn't begun yet, not before any
// event.
func (portable) LastPosition(ctx context.Context, c bun.IConn) (last int64, err error) {
	err = c.QueryRowContext(ctx, `SELECT greatest(newest.xact, pg_snapshot_xmax(pg_current_snapshot())::text::bigint + feed."offset")
FROM `+newestEvent+`, formsvc_feed AS feed WHERE feed.id = 1`).Scan(&last)
	return last, err
}

// fenced is the SQLSTATE of writes that a fence rejects.
const fenced = "MV001"

// fenceWait limits how long a fence waits for transactions under way.
const fenceWait = "10s"

// Fence locks every table, which waits for writers, before it adds triggers. A
// transaction that has begun but not written yet meets them later.
func (portable) Fence(ctx context.Context, c bun.IConn) error {
	_, err := c.ExecContext(ctx, `SET LOCAL lock_timeout = '`+fenceWait+`';
CREATE OR REPLACE FUNCTION formsvc_fence() RETURNS trigger LANGUAGE plpgsql AS $fence$
BEGIN
  RAISE EXCEPTION 'the data is being moved to another database' USING ERRCODE = '`+fenced+`';
END $fence$;
DO $do$
DECLARE t regclass;
BEGIN`+eachTable+`
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t);
  END LOOP;`+eachTable+`
    EXECUTE format('DROP TRIGGER IF EXISTS formsvc_fence ON %s', t);
    EXECUTE format('CREATE TRIGGER formsvc_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
      'FOR EACH STATEMENT EXECUTE FUNCTION formsvc_fence()', t);
  END LOOP;
END $do$`)
	return waited(err)
}

// eachTable begins a loop over all formsvc tables except the one with the state.
const eachTable = `
  FOR t IN SELECT c.oid::regclass FROM pg_class AS c
    WHERE c.relnamespace = (SELECT i.relnamespace FROM pg_class AS i WHERE i.oid = 'formsvc_identity'::regclass)
      AND c.relkind IN ('r', 'p') AND c.relname LIKE 'formsvc\_%' AND c.relname <> 'formsvc_identity' ORDER BY c.relname
  LOOP`

// Unfence waits for readers, because triggers can't be dropped while others read.
func (portable) Unfence(ctx context.Context, c bun.IConn) error {
	_, err := c.ExecContext(ctx, `SET LOCAL lock_timeout = '`+fenceWait+`';
DO $do$
DECLARE t regclass;
BEGIN`+eachTable+`
    EXECUTE format('DROP TRIGGER IF EXISTS formsvc_fence ON %s', t);
  END LOOP;
END $do$;
DROP FUNCTION IF EXISTS formsvc_fence()`)
	return waited(err)
}

// waited adds what to do about transactions that don't end.
func waited(err error) error {
	if isLockTimeout(err) {
		return fmt.Errorf("transactions under way on the tables did not end within %s; end them, or stop the programs that use the database: %w",
			fenceWait, err)
	}
	return err
}

// Empty also disables the counting of new responses until Finish enables it.
func (portable) Empty(ctx context.Context, c bun.IConn) error {
	_, err := c.ExecContext(ctx, `SET LOCAL lock_timeout = '`+fenceWait+`';
DO $do$
DECLARE list text;
BEGIN
  SELECT string_agg(c.oid::regclass::text, ', ') INTO list FROM pg_class AS c
  WHERE c.relnamespace = (SELECT i.relnamespace FROM pg_class AS i WHERE i.oid = 'formsvc_identity'::regclass)
    AND c.relkind IN ('r', 'p') AND c.relname LIKE 'formsvc\_%'
    AND c.relname NOT IN ('formsvc_identity', 'formsvc_schema', 'formsvc_feed');
  EXECUTE 'TRUNCATE ' || list;
END $do$;
ALTER TABLE formsvc_responses DISABLE TRIGGER formsvc_responses_made`)
	return waited(err)
}

// Finish moves the feed so that the oldest running transaction is after last.
func (portable) Finish(ctx context.Context, c bun.IConn, last int64) error {
	_, err := c.ExecContext(ctx, fmt.Sprintf(`
DELETE FROM formsvc_counters;
INSERT INTO formsvc_counters (campaign_id, shard, responses) SELECT campaign_id, 0, count(*) FROM formsvc_responses GROUP BY campaign_id;
DELETE FROM formsvc_statuses;
INSERT INTO formsvc_statuses (campaign_id, status, shard, responses)
SELECT campaign_id, status, 0, count(*) FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status;
ALTER TABLE formsvc_responses ENABLE TRIGGER formsvc_responses_made;
UPDATE formsvc_feed SET "offset" = greatest("offset", %d + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint) WHERE id = 1`, last))
	return err
}
