package postgres

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// The feed is in the order of transaction numbers, which only grow.
//
// An event is at the number of its own transaction or higher, so readers, who stop before
// the oldest transaction that is running, never pass a place where one will still appear.
// The number alone would not do: a transaction has it before it waits for the lock of a
// response, and may commit long after others with higher ones. So an event is not below
// the last transaction that had ended when the statement that inserts it began. That
// statement comes after the one that got the lock, by then the change before has ended,
// and places only grow from one change to the next. At the same place the sequence
// decides, whose numbers the server hands out one by one. No place is above all
// transactions that have ended, so on a quiet server every event is readable.
//
// What sees an older state (REPEATABLE READ) has an older place too. It is undone by the
// server when the response was written since, so every unit that raises events about a
// response writes its row; see touchResponse.
//
// After a crash the server goes on behind every place that is on disk: what a transaction
// saw as ended has its end in the log before that transaction's own.
//
// A dump that is restored on another server brings its events along, but not that
// server's count of transactions: new events could come before old ones, and old ones
// would seem to belong to transactions that are still to run. The offset moves the
// numbers of this server past them.

// feedIsAhead tells whether there are events from transactions that this server
// has not begun yet.
const feedIsAhead = `
SELECT newest.xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + feed."offset"
FROM ` + newestEvent + `, formsvc_feed AS feed WHERE feed.id = 1`

// moveOffset makes the oldest transaction that is still running come after all
// events.
const moveOffset = `
UPDATE formsvc_feed AS feed
SET "offset" = newest.xact + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM ` + newestEvent + ` WHERE feed.id = 1`

const newestEvent = `(
  SELECT coalesce(max(e.xact), 0) AS xact FROM formsvc_accounts AS a CROSS JOIN LATERAL (
    SELECT e.xact FROM formsvc_events AS e WHERE e.account_id = a.id ORDER BY e.xact DESC, e.seq DESC LIMIT 1
  ) AS e
) AS newest`

// moveFeed makes new events come after those that are there. It only looks,
// unless the data was moved.
func (s *Store) moveFeed(ctx context.Context) error {
	return s.inTx(ctx, func(ctx context.Context, c bun.IConn) error {
		var ahead bool
		if err := c.QueryRowContext(ctx, feedIsAhead).Scan(&ahead); err != nil || !ahead {
			return err
		}
		// Whoever is writing events reads the offset after getting this lock.
		if _, err := c.ExecContext(ctx, "LOCK TABLE formsvc_events IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		if err := c.QueryRowContext(ctx, feedIsAhead).Scan(&ahead); err != nil || !ahead {
			return err
		}
		_, err := c.ExecContext(ctx, moveOffset)
		return err
	})
}

// Restored makes the feed of a database that was brought back from a dump go on behind
// what anybody has read of it. Call it before anybody uses the database: whoever read the
// feed since the dump has a position beyond what is in it, and would otherwise miss as
// many new events as were lost. To call it again does no harm. A restored server whose
// log was replayed to the end (PITR, a standby) needs it only if something was lost.
func (s *Store) Restored(ctx context.Context) error {
	err := s.inTx(ctx, func(ctx context.Context, c bun.IConn) error {
		if _, err := c.ExecContext(ctx, "LOCK TABLE formsvc_events IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, fmt.Sprintf(`UPDATE formsvc_feed SET "offset" = "offset" + %d WHERE id = 1`,
			bunstore.LostPositions))
		return err
	})
	if err != nil {
		return fmt.Errorf("postgres: restored: %w", s.backend.Classify(err))
	}
	return nil
}
