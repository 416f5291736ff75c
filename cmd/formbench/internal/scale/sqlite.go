package scale

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/formsvc/toolkit/formsvc"
)

// A stuffer stores records in an SQLite file that nobody else has open: without a
// journal, since a file that is half full is thrown away.
type stuffer struct {
	mu     sync.Mutex
	db     *sql.DB
	conn   *sql.Conn
	tables []*stuffed
}

// A stuffed table is filled by statements of many rows and of one.
type stuffed struct {
	columns   int
	one, many *sql.Stmt
}

// stuffedRows is how many rows one statement stores.
const stuffedRows = 50

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
	for _, t := range copied(nil, 0) {
		columns := strings.Fields(t.columns)
		if t.table == "formsvc_events" {
			columns = without(columns, "xact")
		}
		table, err := s.table(ctx, t.table, columns)
		if err != nil {
			return nil, err
		}
		s.tables = append(s.tables, table)
	}
	return s, nil
}

func without(list []string, name string) (rest []string) {
	for _, s := range list {
		if s != name {
			rest = append(rest, s)
		}
	}
	return rest
}

func (s *stuffer) table(ctx context.Context, name string, columns []string) (*stuffed, error) {
	t := &stuffed{columns: len(columns)}
	head := "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES "
	row := "(" + strings.Repeat("?, ", len(columns)-1) + "?)"
	var err error
	if t.one, err = s.conn.PrepareContext(ctx, head+row); err != nil {
		return nil, err
	}
	t.many, err = s.conn.PrepareContext(ctx, head+strings.Repeat(row+", ", stuffedRows-1)+row)
	return t, err
}

// Close implements recordWriter.
func (s *stuffer) Close() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.db.Close())
}

func (s *stuffer) write(ctx context.Context, records []record) error {
	tables := stuffing(records)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	for i, rows := range tables {
		if err := s.tables[i].insert(ctx, rows); err != nil {
			return fmt.Errorf("table %d: %w", i, err)
		}
	}
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (t *stuffed) insert(ctx context.Context, args []any) error {
	for len(args) > 0 {
		stmt, n := t.one, t.columns
		if many := t.columns * stuffedRows; len(args) >= many {
			stmt, n = t.many, many
		}
		if _, err := stmt.ExecContext(ctx, args[:n]...); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// stuffing returns the records as the arguments of the tables of copied, where
// identifiers are text.
func stuffing(records []record) [4][]any {
	responses, events := make([]any, 0, 14*len(records)), make([]any, 0, 7*len(records))
	var deliveries, attempts []any
	for i := range records {
		r := &records[i]
		id, account, campaign, event := string(r.ID), string(r.AccountID), string(r.CampaignID), string(r.event.ID)
		responses = append(responses, id, account, campaign, r.Reference, r.Status, r.User.Email, r.User.FirstName,
			r.User.LastName, r.Answers.JSON(), r.Version, r.CreatedAt.UnixMicro(), r.UpdatedAt.UnixMicro(),
			r.CompletedAt.UnixMicro(), event)
		at, size := r.event.CreatedAt.UnixMicro(), len(r.event.Payload)
		events = append(events, event, account, campaign, id, createdBit(), at, r.event.Payload)
		r.deliveries(func(d *deliveryRow) {
			delivery := string(formsvc.DeliveryID(r.event.ID, d.hook))
			deliveries = append(deliveries, string(d.hook), delivery, event, createdBit(), d.due, d.lease, at, d.updated,
				size, 0, d.state, d.attempts)
			if d.attempts > 0 {
				start, took := r.attempted()
				attempts = append(attempts, delivery, 1, start.UnixMicro(), took.Microseconds(), 200, "", []byte{})
			}
		})
	}
	return [4][]any{responses, events, deliveries, attempts}
}

// sqliteSizes returns the tables and indexes with their bytes.
const sqliteSizes = `
SELECT m.tbl_name, CASE WHEN m.type = 'index' THEN m.name ELSE '' END,
  (SELECT sum(s.pgsize) FROM dbstat AS s WHERE s.name = m.name AND s.aggregate = 1)
FROM sqlite_schema AS m WHERE m.type IN ('table', 'index') AND m.rootpage > 0
  AND m.tbl_name IN ('formsvc_responses', 'formsvc_events', 'formsvc_deliveries', 'formsvc_attempts')
ORDER BY m.tbl_name, m.type DESC, m.name`
