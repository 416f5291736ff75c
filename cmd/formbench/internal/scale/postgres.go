package scale

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/formsvc/toolkit/formsvc"
)

// A copier stores records with COPY, on a connection for each who stores at once.
type copier struct {
	idle chan *pgx.Conn
}

func newCopier(ctx context.Context, dsn string) (*copier, error) {
	c := &copier{idle: make(chan *pgx.Conn, workerCount)}
	for range workerCount {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.idle <- conn
		if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// Close implements recordWriter.
func (c *copier) Close() (err error) {
	close(c.idle)
	for conn := range c.idle {
		err = errors.Join(err, conn.Close(context.Background()))
	}
	return err
}

// positionQuery is what the product gives the events of a transaction.
const positionQuery = `SELECT pg_current_xact_id()::text::bigint + f."offset" FROM formsvc_feed AS f`

func (c *copier) write(ctx context.Context, records []record) error {
	conn := <-c.idle
	defer func() { c.idle <- conn }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var position int64
		if err := tx.QueryRow(ctx, positionQuery).Scan(&position); err != nil {
			return err
		}
		for _, t := range copied(records, position) {
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

// A copiedTable is rows of a table.
type copiedTable struct {
	table, columns string
	rows           [][]any
}

// copied returns the records as rows.
func copied(records []record, position int64) []copiedTable {
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
		events[i] = []any{event, account, campaign, id, position, createdBit(), at, r.event.Payload}
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
		{"formsvc_events", "id account_id campaign_id response_id xact type created_at payload", events},
		{"formsvc_deliveries", "webhook_id id event_id event_type due_at lease created_at updated_at size kind state attempts", deliveries},
		{"formsvc_attempts", "delivery_id number started_at duration status error answer", attempts},
	}
}

// uuid returns the bytes of an identifier.
func uuid(id formsvc.ID) (b [16]byte) {
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
