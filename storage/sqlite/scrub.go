package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// How Scrub tries: writers wait meanwhile, so it gives way soon and comes again.
const (
	scrubTries = 10
	scrubWait  = 100 * time.Millisecond
	scrubPause = 200 * time.Millisecond
)

// errLogInUse means that somebody reads what is only in the log.
var errLogInUse = errors.New("sqlite: the log is in use")

// Scrub empties the write-ahead log, which has copies of the pages as they were
// before something was removed. A reader that goes on for seconds, such as an
// export, keeps it from that: then it fails, and the log is written over later. In
// the database itself Open has SQLite overwrite what is deleted; a database that
// the caller opened needs PRAGMA secure_delete=ON for that.
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

// truncateLog moves the log into the database and empties it, unless somebody
// still needs it.
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
