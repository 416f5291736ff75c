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

// errLogInUse means that a reader needs something that is only in the log.
var errLogInUse = errors.New("sqlite: the log is in use")

// Scrub empties the write-ahead log, which has copies of pages from before a deletion. It
// fails if a reader, such as an export, needs the log for seconds; the log is then
// overwritten later. In the database file, Open makes SQLite overwrite deleted data. A
// database that the caller opened needs PRAGMA secure_delete=ON for that.
func (s *Store) Scrub(ctx context.Context) error {
	for try := 1; ; try++ {
		if err := s.records.Usable(ctx); err != nil {
			return err
		}
		busy := false
		err := alone(ctx, s.writer, func(c bun.IConn) (err error) {
			busy, err = truncateLog(ctx, c)
			return err
		})
		switch {
		case err != nil:
			return s.backend.Classify(err)
		case !busy:
			return nil
		case try == scrubTries:
			return errLogInUse
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(scrubPause):
		}
	}
}

// truncateLog copies the log into the database and empties it, unless a reader still
// needs it.
func truncateLog(ctx context.Context, c bun.IConn) (busy bool, err error) {
	var patience int
	if err := c.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&patience); err != nil {
		return false, err
	}
	set := func(ms int) error {
		_, err := c.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", ms))
		return err
	}
	if err := set(int(scrubWait.Milliseconds())); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, set(patience)) }()
	var frames, moved int
	err = c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	return busy, err
}
