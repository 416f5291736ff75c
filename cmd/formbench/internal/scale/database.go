package scale

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
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

// finish counts the responses, and does now what the database would do by itself
// soon.
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

// sizes returns how much the tables, without their indexes, and the indexes take that grow with the responses.
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
