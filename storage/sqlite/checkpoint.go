package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/uptrace/bun"
)

// pageSize is that of the databases that Open makes, and of a frame of their logs.
const pageSize = 4096

// logFrames is how long the log may get.
func (o *Options) logFrames() int { return int(max(o.LogSize/pageSize, 1)) }

const (
	// muchLonger is how many times longer the log is when SQLite moves it inside a
	// commit, should all else fail.
	muchLonger = 16

	lookAfter = 16  // commits
	fewFrames = 256 // which hold up the writer for a millisecond or two
	passes    = 4   // to come so near to a writer that goes on meanwhile
)

// A checkpointer moves the log into the database beside the writer, which SQLite by
// itself would do inside of a commit: that one and all that wait for it would take
// as long as copying all of it and flushing the disk twice. Only for the few pages that
// were written meanwhile the writer waits, so that the log can begin anew.
type checkpointer struct {
	db     *sql.DB // of one connection
	writer writer
	limit  int // frames

	commits atomic.Int64
	working atomic.Bool
	work    sync.WaitGroup
	next    int // frames; only who set working uses it
}

// committed is called after each commit. It doesn't wait.
func (k *checkpointer) committed() {
	if k == nil || k.commits.Add(1)%lookAfter != 0 || !k.working.CompareAndSwap(false, true) {
		return
	}
	k.work.Go(func() {
		defer k.working.Store(false)
		k.look(context.Background())
	})
}

// look moves the log if it is long. A failure leaves it as it is, for the next try, or for a
// commit that finds it far too long, which then tells of it.
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
	k.next = log + k.limit/4 // where readers keep it from beginning anew
	if err != nil || log-moved > k.limit {
		return // readers need even what is in it
	}
	_ = alone(ctx, k.writer, func(c bun.IConn) error {
		_, _, err := checkpoint(ctx, c, "PASSIVE")
		return err
	})
}

// close waits for what is under way and closes the connection.
func (k *checkpointer) close() error {
	if k == nil {
		return nil
	}
	k.work.Wait()
	return k.db.Close()
}

// errBusy means that another connection moves the log.
var errBusy = errors.New("sqlite: a checkpoint is under way elsewhere")

// checkpoint returns how long the log is and how much of it is in the database.
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
