package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/uptrace/bun"
)

// pageSize is the page size of databases that Open creates, and of the frames of their
// logs.
const pageSize = 4096

// logFrames returns how many frames the log may have.
func (o *Options) logFrames() int { return int(max(o.LogSize/pageSize, 1)) }

const (
	// muchLonger is how many times longer the log must be before SQLite checkpoints it
	// inside a commit, as a last resort.
	muchLonger = 16

	lookAfter = 16  // commits
	fewFrames = 256 // which delay the writer by a millisecond or two
	passes    = 4   // to catch up with a writer that continues meanwhile
)

// A checkpointer copies the log into the database concurrently with the writer. By
// default SQLite does that inside a commit, which, with all commits behind it, would wait
// for the whole copy and two flushes of the disk. With the checkpointer, the writer waits
// only for the few pages written meanwhile, so that the log can restart.
type checkpointer struct {
	db     *sql.DB // with one connection
	writer writer
	limit  int // frames

	commits atomic.Int64
	working atomic.Bool
	work    sync.WaitGroup
	next    int // frames; used only by the goroutine that set working
}

// committed is called after each commit. It doesn't block.
func (k *checkpointer) committed() {
	if k == nil || k.commits.Add(1)%lookAfter != 0 || !k.working.CompareAndSwap(false, true) {
		return
	}
	k.work.Go(func() {
		defer k.working.Store(false)
		k.look(context.Background())
	})
}

// look copies the log into the database if it is long. After a failure the next call tries
// again; at the latest, a commit that finds the log far too long reports the error.
func (k *checkpointer) look(ctx context.Context) {
	log, moved, err := checkpoint(ctx, k.db, "NOOP")
	if err == nil && log < k.limit {
		k.next = 0
	}
	if err != nil || log < max(k.limit, k.next) {
		return
	}
	for n := 0; n < passes && err == nil && (n == 0 || log-moved > fewFrames); n++ {
		log, moved, err = checkpoint(ctx, k.db, "PASSIVE")
	}
	k.next = log + k.limit/4 // readers keep it from restarting
	if err != nil || log-moved > k.limit {
		return // readers still need it
	}
	_ = alone(ctx, k.writer, func(c bun.IConn) error {
		_, _, err := checkpoint(ctx, c, "PASSIVE")
		return err
	})
}

// close waits for a checkpoint under way and closes the connection.
func (k *checkpointer) close() error {
	if k == nil {
		return nil
	}
	k.work.Wait()
	return k.db.Close()
}

// errBusy means that another connection is checkpointing the log, or reads what is only there.
var errBusy = errors.New("sqlite: the log is in use")

// checkpoint returns the frames in the log and how many of them are in the database.
func checkpoint(ctx context.Context, c interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, mode string,
) (log, moved int, err error) {
	var busy bool
	if err := c.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &moved); err != nil {
		return 0, 0, err
	}
	if busy {
		return 0, 0, errBusy
	}
	return log, moved, nil
}
