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

// LastPosition is an expression of the last number that an event had.
const LastPosition = "(SELECT max(last, coalesce((SELECT max(seq) FROM formsvc_events), 0)) FROM formsvc_feed)"

// LookAtEvents implements bunstore.Backend.
func (*backend) LookAtEvents(ctx context.Context, c bun.IConn, l *bunstore.Look) ([]bunstore.Glimpse, error) {
	if l.Account == "" {
		return bunstore.List(ctx, c, bunstore.ScanGlimpse, lookAtAllEvents, l.From.Commit, l.Limit)
	}
	statement := lookAtEvents
	if l.Back {
		statement = lookBackAtEvents
	}
	return bunstore.List(ctx, c, bunstore.ScanGlimpse, statement, l.From.Commit, l.Limit, raw(formsvc.ID(l.Account)))
}
