// Package transfer moves the data of a service from one database to another, SQLite or Postgres,
// in either direction. It moves accounts, keys, campaigns, responses, files, events, webhooks
// with their secrets, deliveries, idempotency records, quotas and the audit trail. Users of the
// settings pages have to sign in again. The command "formsvc copy" uses this package.
//
// The source is fenced first: every later write to it fails with [formsvc.ErrMoved], so that
// every acknowledged write is copied. Rows are copied in batches, each in one transaction with
// the progress so far. A copy that was killed resumes there when you run it again. Finally all
// rows of both sides are read and compared. The source is marked as moved before the target may
// be used, so no store opens both. That way each pending delivery is sent by the new database
// only.
//
// A copy that fails removes the fence, and the source is in use again as if nothing had happened.
//
// All identifiers, versions and positions are kept: API keys, cursors, ETags and idempotency keys
// stay valid. Positions in the event feed stay valid, too, including those that Postgres assigned
// and SQLite is asked for. The exception: after a move from Postgres to SQLite and back to
// Postgres, a position from the first Postgres may repeat events.
package transfer
