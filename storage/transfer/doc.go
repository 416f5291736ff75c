// Package transfer moves the data of a service from one database to another, SQLite or
// Postgres, either way: accounts, keys, campaigns, responses, files, events, webhooks with
// their secrets, deliveries, idempotency records, quotas and the audit trail. Who is
// signed in to the settings signs in anew. It does what "formsvc copy" does.
//
// The database that the data comes from is fenced first: whoever writes to it from then on
// fails with [formsvc.ErrMoved], so that nothing is acknowledged that is not copied. Rows go over
// in batches, each in one transaction with the note of how far the copy is; a copy
// that was killed goes on there when it is run again. At last all rows of both sides are
// read and compared, and the old database is marked as moved before the new one may be
// used: no store opens either of them in between, nor the old one afterwards, so that a
// delivery that waits is sent by the new one only.
//
// A copy that fails takes the fence away, and the old database is in use again as if nothing
// had happened.
//
// Everything keeps its identifiers, versions and positions: API keys, cursors, ETags and
// idempotency keys go on being valid. So do positions in the feed of events, also those that
// Postgres gave and that SQLite is asked for. One that Postgres gave before the data
// went to SQLite and to Postgres again may repeat events.
package transfer
