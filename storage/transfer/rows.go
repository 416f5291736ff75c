package transfer

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// Limits of a batch, which is written in one transaction, in rows and bytes.
const (
	batchRows  = 4096
	batchBytes = 4 << 20
)

// rows copies the tables.
func (j *job) rows(ctx context.Context) error {
	from, _ := j.tables()
	all, err := count(ctx, j.from, from)
	if err != nil {
		return err
	}
	var sum, done int64
	for _, n := range all {
		sum += n
	}
	for i := range from {
		err := j.table(ctx, &from[i], func(copied int64) {
			j.Progress(Progress{"rows", done + copied, sum})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", from[i].Name, err)
		}
		done += all[i]
	}
	return nil
}

func count(ctx context.Context, d bunstore.Portable, tables []bunstore.Table) (list []int64, err error) {
	err = d.Read(ctx, func(c bun.IConn) error {
		for i := range tables {
			var n int64
			if err := c.QueryRowContext(ctx, "SELECT count(*) FROM "+tables[i].Name).Scan(&n); err != nil {
				return err
			}
			list = append(list, n)
		}
		return nil
	})
	return list, err
}

// A mark is the progress of copying a table.
type mark struct {
	copied int64
	upto   string // key of the last row
	done   bool
}

// table copies one table from its mark on. It reads ahead while it writes.
func (j *job) table(ctx context.Context, t *bunstore.Table, progress func(int64)) error {
	at, err := j.mark(ctx, t)
	if err != nil || at.done {
		return err
	}
	after, err := decodeKey(t, at.upto)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	batches, read := make(chan [][]any, 1), make(chan error, 1)
	go func() {
		defer close(batches)
		read <- j.from.Read(ctx, func(c bun.IConn) error {
			return readBatches(ctx, j.from, c, t, after, batches)
		})
	}()
	for rows := range batches {
		if err == nil {
			if err = j.batch(ctx, t, &at, rows); err != nil {
				stop() // and drain what was read ahead
			}
			progress(at.copied)
		}
	}
	if failed := <-read; err == nil { // otherwise the reader was told to stop
		err = failed
	}
	if err != nil {
		return err
	}
	return j.to.Write(ctx, func(c bun.IConn) error {
		_, err := c.ExecContext(ctx, j.to.Rebind("UPDATE formsvc_copy SET done = 1 WHERE name = ?"), t.Name)
		return err
	})
}

func (j *job) mark(ctx context.Context, t *bunstore.Table) (m mark, err error) {
	err = j.to.Read(ctx, func(c bun.IConn) error {
		var done int
		err := c.QueryRowContext(ctx, j.to.Rebind("SELECT copied, upto, done FROM formsvc_copy WHERE name = ?"), t.Name).
			Scan(&m.copied, &m.upto, &done)
		m.done = done != 0
		return err
	})
	return m, err
}

// batch writes rows and the new mark in one transaction. If the stored mark isn't the one
// this process wrote, another process copies, too, and batch fails.
func (j *job) batch(ctx context.Context, t *bunstore.Table, at *mark, rows [][]any) error {
	next := mark{copied: at.copied + int64(len(rows)), upto: encodeKey(t, rows[len(rows)-1])}
	err := j.to.Write(ctx, func(c bun.IConn) error {
		result, err := c.ExecContext(ctx, j.to.Rebind("UPDATE formsvc_copy SET copied = ?, upto = ? WHERE name = ? AND copied = ? AND upto = ?"),
			next.copied, next.upto, t.Name, at.copied, at.upto)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, ErrUnderWay)
		}
		return j.to.Insert(ctx, c, t, rows)
	})
	if err == nil {
		*at = next
	}
	return err
}

// readBatches sends the rows after a key, ordered by key.
func readBatches(ctx context.Context, d bunstore.Portable, c bun.IConn, t *bunstore.Table, after []any, to chan<- [][]any) error {
	query, args := t.Select(d, after, 0)
	var (
		batch [][]any
		bytes int
	)
	send := func() error {
		select {
		case to <- batch:
			batch, bytes = nil, 0
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := each(ctx, c, t, query, args, func(row []any) error {
		batch = append(batch, row)
		if bytes += size(row); len(batch) < batchRows && bytes < batchBytes {
			return nil
		}
		return send()
	})
	if err == nil && len(batch) > 0 {
		err = send()
	}
	return err
}

// each calls do with every row of a query. do may keep the row.
func each(ctx context.Context, c bun.IConn, t *bunstore.Table, query string, args []any, do func(row []any) error) (err error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	into := make([]any, len(t.Columns))
	for rows.Next() {
		row := make([]any, len(t.Columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := scan(rows, t, row, into); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scan converts the driver's values to the types of the columns' kinds.
func scan(rows *sql.Rows, t *bunstore.Table, row, into []any) error {
	if err := rows.Scan(into...); err != nil {
		return err
	}
	for i, v := range row {
		switch v := v.(type) {
		case nil, int64:
		case bool:
			row[i] = int64(0)
			if v {
				row[i] = int64(1)
			}
		case string:
			if t.Columns[i].Kind == bunstore.Bytes {
				row[i] = []byte(v)
			}
		case []byte:
			if t.Columns[i].Kind != bunstore.Bytes {
				row[i] = string(v)
			}
		default:
			return fmt.Errorf("%s.%s has the unknown type %T", t.Name, t.Columns[i].Name, v)
		}
	}
	return nil
}

// size returns about how many bytes of memory a row takes.
func size(row []any) int {
	n := 16 * len(row)
	for _, v := range row {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// encodeKey encodes the key of a row for the stored mark.
func encodeKey(t *bunstore.Table, row []any) string {
	list := make([]string, len(t.Key))
	for i, name := range t.Key {
		switch v := row[t.Index(name)].(type) {
		case int64:
			list[i] = strconv.FormatInt(v, 10)
		case []byte:
			list[i] = hex.EncodeToString(v)
		case string:
			list[i] = v
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return string(text)
}

func decodeKey(t *bunstore.Table, text string) (key []any, err error) {
	if text == "" {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != len(t.Key) {
		return nil, fmt.Errorf("the progress of the copy can't be read: %q", text)
	}
	for i, name := range t.Key {
		var v any = list[i]
		switch t.Columns[t.Index(name)].Kind {
		case bunstore.Int:
			v, err = strconv.ParseInt(list[i], 10, 64)
		case bunstore.Bytes:
			v, err = hex.DecodeString(list[i])
		default:
		}
		if err != nil {
			return nil, fmt.Errorf("the progress of the copy can't be read: %w", err)
		}
		key = append(key, v)
	}
	return key, nil
}
