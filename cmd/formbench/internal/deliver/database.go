package deliver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/formsvc"
)

// countDelivered returns how many deliveries to the webhooks are delivered and have
// an attempt that says so.
func countDelivered(ctx context.Context, d *database.Database, hooks []formsvc.ID) (n int, err error) {
	list := make([]string, len(hooks))
	for i, id := range hooks {
		list[i] = "'" + string(id) + "'"
	}
	err = d.Use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries d WHERE state = 1 AND webhook_id IN ("+
			strings.Join(list, ", ")+") AND EXISTS (SELECT 1 FROM formsvc_attempts a WHERE a.delivery_id = d.id "+
			"AND a.number = d.attempts AND a.error = '')").Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count what was delivered: %w", err)
	}
	return n, nil
}

// countWaiting returns how many deliveries to a webhook wait.
func countWaiting(ctx context.Context, d *database.Database, hook formsvc.ID) (n int, err error) {
	err = d.Use(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM formsvc_deliveries WHERE state = 0 AND webhook_id = '"+
			string(hook)+"'").Scan(&n)
	})
	return n, err
}

// fillStatement stores deliveries: webhook, number of the first, how many, due
// time of the first.
func fillStatement(d *database.Database) string {
	const columns = `INSERT INTO formsvc_deliveries
		(webhook_id, id, event_id, event_type, due_at, lease, created_at, updated_at, size, kind, state, attempts) `
	if strings.HasPrefix(d.DSN, "sqlite:") {
		return `WITH RECURSIVE n (i) AS (SELECT ?2 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2 + ?3) ` + columns +
			`SELECT ?1, printf('%08x-0000-7000-8000-000000000000', i), printf('%08x-0000-7000-8000-000000000000', i),
			1, ?4 + i, 0, ?4, 0, 800, 0, 0, 0 FROM n`
	}
	return columns + `SELECT $1::uuid, (lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000')::uuid,
		1, $4::bigint + i, 0, $4::bigint, 0, 800, 0, 0, 0 FROM generate_series($2::bigint, $2::bigint + $3::bigint - 1) i`
}

// fillDeliveries stores n deliveries of a webhook that are due since a while.
func fillDeliveries(ctx context.Context, d *database.Database, db *sql.DB, hook formsvc.ID, first, n int, due time.Time) error {
	_, err := db.ExecContext(ctx, fillStatement(d), string(hook), first, n, due.UnixMicro())
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}
