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
// touchedResponse in bunstore.
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

// settled is the oldest running transaction. No event can still appear before it in the
// feed.
const settled = `(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + f."offset" FROM formsvc_feed AS f WHERE f.id = 1)`

const (
	look = `
SELECT e.id, e.xact, e.seq, e.type, e.campaign_id, octet_length(e.payload) FROM `

	lookOfAccount    = look + `formsvc_events AS e WHERE e.account_id = $4::text::uuid AND (e.xact, e.seq) `
	lookAtEarly      = lookOfAccount + `> ($1::bigint, $2::bigint) ORDER BY e.xact, e.seq LIMIT $3`
	lookAtEvents     = lookOfAccount + `> ($1::bigint, $2::bigint) AND e.xact < ` + settled + ` ORDER BY e.xact, e.seq LIMIT $3`
	lookBackAtEvents = lookOfAccount + `< ($1::bigint, $2::bigint) ORDER BY e.xact DESC, e.seq DESC LIMIT $3`

	// These find the next events of each account by the only index of the feed, and keep the
	// first of them all. An index over all accounts would add cost to every new response.
	lookAtAllEvents = lookAtAll + ` AND i.xact < ` + settled + inOrder
	lookAtAllEarly  = lookAtAll + inOrder
	lookAtAll       = look + `(
  SELECT n.* FROM formsvc_accounts AS a CROSS JOIN LATERAL (
    SELECT i.account_id, i.xact, i.seq FROM formsvc_events AS i
    WHERE i.account_id = a.id AND (i.xact, i.seq) > ($1::bigint, $2::bigint)`
	inOrder = `
    ORDER BY i.xact, i.seq LIMIT $3
  ) AS n ORDER BY n.xact, n.seq LIMIT $3
) AS n CROSS JOIN LATERAL (
  SELECT * FROM formsvc_events AS m WHERE m.account_id = n.account_id AND m.xact = n.xact AND m.seq = n.seq LIMIT 1
) AS e ORDER BY e.xact, e.seq`
)

// ListEvents implements bunstore.Backend.
func (*backend) ListEvents(ctx context.Context, c bun.IConn, l *bunstore.FeedQuery) ([]bunstore.EventMeta, error) {
	args := []any{l.From.Commit, l.From.Row, l.Limit}
	if l.Account != "" {
		args = append(args, l.Account)
	}
	statement := lookAtEvents
	switch {
	case l.Account == "" && l.Early:
		statement = lookAtAllEarly
	case l.Account == "":
		statement = lookAtAllEvents
	case l.Back:
		statement = lookBackAtEvents
	case l.Early:
		statement = lookAtEarly
	}
	return bunstore.List(ctx, c, bunstore.ScanEventMeta, statement, args...)
}
