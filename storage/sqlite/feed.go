package sqlite

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// The feed is in the order of sequence numbers. There is one writer, so events commit in
// that order, none can still precede another, and the second number of a position isn't
// used.
const (
	look = "SELECT e.id, e.seq, 0, e.type, e.campaign_id, length(e.payload) FROM formsvc_events AS e"
	most = " LIMIT CAST(?2 AS BIGINT)"

	lookAtAllEvents  = look + " WHERE e.seq > ?1 ORDER BY e.seq" + most
	lookOfAccount    = look + " INDEXED BY formsvc_events_account WHERE e.account_id = ?3 AND e.seq "
	lookAtEvents     = lookOfAccount + "> ?1 ORDER BY e.seq" + most
	lookBackAtEvents = lookOfAccount + "< ?1 ORDER BY e.seq DESC" + most
)

// Anchor has the identifier of the event that keeps the last position, see the schema.
const Anchor = "X'ffffffffffffffffffffffffffffffff'"

// MoveFeed returns the statement that makes new events come after a position, given as an expression.
func MoveFeed(position string) string {
	return "INSERT OR REPLACE INTO formsvc_events (seq, id, account_id, campaign_id, response_id, type, created_at, payload) " +
		"SELECT n.last, " + Anchor + ", zeroblob(16), zeroblob(16), zeroblob(16), 65536, 0, X'' FROM (SELECT " + position + " AS last) AS n " +
		"WHERE NOT EXISTS (SELECT 1 FROM formsvc_events WHERE seq >= n.last)"
}

// ListEvents implements bunstore.Backend.
func (*backend) ListEvents(ctx context.Context, c bun.IConn, l *bunstore.FeedQuery) ([]bunstore.EventMeta, error) {
	if l.Account == "" {
		return bunstore.List(ctx, c, bunstore.ScanEventMeta, lookAtAllEvents, l.From.Commit, l.Limit)
	}
	statement := lookAtEvents
	if l.Back {
		statement = lookBackAtEvents
	}
	return bunstore.List(ctx, c, bunstore.ScanEventMeta, statement, l.From.Commit, l.Limit, raw(formsvc.ID(l.Account)))
}
