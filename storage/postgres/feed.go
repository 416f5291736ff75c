package postgres

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// The feed is in the order of transaction numbers, which only grow.
//
// An event is at the number of its own transaction or higher. Readers stop before the
// oldest running transaction, so they never pass a position where an event will still
// appear. The transaction's number alone isn't enough: a transaction gets it before it
// waits for the lock of a response, and may commit long after others with higher numbers.
// So an event is never below the last transaction that had ended when the statement that
// inserts the event began. That statement follows the one that acquired the lock. By then
// the previous change has ended, so positions only grow from one change to the next. At
// equal positions the sequence decides, whose numbers the server assigns one by one. No
// position is above all ended transactions, so on an idle server every event is readable.
//
// A transaction that sees an older state (REPEATABLE READ) gets an older position, too.
// If the response has been written since, the server rolls the transaction back. That is
// why every transaction that raises events about a response writes its row; see
// touchResponse.
//
// After a crash the server continues after every position on disk: if a transaction saw
// another one as ended, that end is in the log before its own.
//
// A dump restored on another server has its events, but not the old server's count of
// transactions. New events could come before old ones, and old ones could seem to belong
// to future transactions. The offset moves this server's numbers beyond them.

// feedIsAhead reports whether there are events of transactions that this server hasn't
// begun yet.
const feedIsAhead = `
SELECT newest.xact >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + feed."offset"
FROM ` + newestEvent + `, formsvc_feed AS feed WHERE feed.id = 1`

// moveOffset puts the oldest running transaction after all events.
const moveOffset = `
UPDATE formsvc_feed AS feed
SET "offset" = newest.xact + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM ` + newestEvent + ` WHERE feed.id = 1`

const newestEvent = `(
  SELECT coalesce(max(e.xact), 0) AS xact FROM formsvc_accounts AS a CROSS JOIN LATERAL (
    SELECT e.xact FROM formsvc_events AS e WHERE e.account_id = a.id ORDER BY e.xact DESC, e.seq DESC LIMIT 1
  ) AS e
) AS newest`

// moveFeed puts new events after the existing ones. It only reads, unless the data was
// moved.
func (s *Store) moveFeed(ctx context.Context) error {
	return s.inTx(ctx, func(ctx context.Context, c bun.IConn) error {
		var ahead bool
		if err := c.QueryRowContext(ctx, feedIsAhead).Scan(&ahead); err != nil || !ahead {
			return err
		}
		// After this lock is acquired, other writers of events read the new offset.
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

// Restored makes the feed of a database that was restored from a dump continue after
// anything that was read of it. Call it before the database is used. Readers of the feed
// may have positions beyond the restored data; without this call they would miss as many
// new events as were lost. Calling it again does no harm. A restored server whose log was
// replayed to the end (PITR, a standby) needs it only if something was lost.
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
