// Package bunstore is what the SQL stores share: rows, queries, group commit,
// migrations and the rules of units. It links no driver; a [Backend] supplies
// what differs between databases.
//
// Queries on hot paths (create, get and list responses, claim and finish
// deliveries) are prepared SQL scanned into plain types; everything else is
// built by bun. bun writes every argument into the SQL text, which costs the
// hot paths a third of their time and leaves nothing for a database to cache.
//
// Values that are secret are sealed by package keyring before they become part
// of a query.
//
// Times are stored as microseconds since 1970 in UTC, so that both databases
// compare and return them alike; the zero time is the microsecond that
// [time.Time.UnixMicro] gives for it. Identifiers are canonical UUID text.
package bunstore
