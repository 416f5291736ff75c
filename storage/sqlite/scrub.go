package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// Limits of Scrub's attempts. Writers wait during an attempt, so it gives up soon and
// tries again.
const (
	scrubTries = 10
	scrubWait  = 100 * time.Millisecond
	scrubPause = 200 * time.Millisecond
)

// Scrub empties the write-ahead log, which has copies of pages from before a deletion. It
// fails if a reader, such as an export, needs the log for seconds; the log is then
// overwritten later. In the database file, Open makes SQLite overwrite deleted data. A
// database that the caller opened needs PRAGMA secure_delete=ON for that.
func (s *Store) Scrub(ctx context.Context) error {
	for try := 1; ; try++ {
		if err := s.records.Usable(ctx); err != nil {
			return err
		}
		err := alone(ctx, s.writer, func(c bun.IConn) error { return truncateLog(ctx, c) })
		if !errors.Is(err, errBusy) || try == scrubTries {
			return s.backend.Classify(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(scrubPause):
		}
	}
}

// truncateLog copies the log into the database and empties it. It fails with errBusy if a
// reader still needs it.
func truncateLog(ctx context.Context, c bun.IConn) (err error) {
	var patience int
	if err := c.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience); err != nil {
		return err
	}
	set := func(ms int) error {
		_, err := c.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", ms))
		return err
	}
	if err := set(int(scrubWait.Milliseconds())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set(patience)) }()
	_, _, err = checkpoint(ctx, c, "TRUNCATE")
	return err
}
