// Package bunstore is what the SQL stores share: rows, queries, group commit, migrations
// and transaction handling. It links no driver; a [Backend] supplies what differs between
// databases.
//
// Queries on hot paths are prepared SQL scanned into plain types: each backend has its own
// to create responses, look at the feed, claim and finish deliveries; those to get and list
// responses are here. Everything else is built by bun. bun writes
// every argument into the SQL text, which would cost the hot paths a third of their time
// and leave the database nothing to cache.
//
// Package keyring seals secret values before they become part of a query.
//
// Times are stored as microseconds since 1970 in UTC, so that all databases compare and
// return them alike. The zero time is stored as its [time.Time.UnixMicro]. Identifiers
// are canonical UUID text.
package bunstore
