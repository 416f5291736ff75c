// Package postgres keeps campaigns, responses, webhooks and the delivery queue
// in one Postgres database (14 or later), which any number of nodes may share.
//
//	store, err := postgres.Open(ctx, "postgres://localhost/forms", nil)
//
// # Durability
//
// [Open] refuses a server that does not wait for its log (synchronous_commit):
// when a call returns nil, what it wrote survives the loss of the node. It
// survives the loss of the server only with synchronous replication.
//
// # Concurrency
//
// New responses that arrive together are written by one statement, which is one
// transaction (group commit); a response that can't be written is left out of it
// and fails alone. Other writes have transactions of their own.
//
// # Poolers
//
// The package needs no extension and keeps no state in a session but prepared
// statements. For a pooler that can't keep those either (PgBouncer in
// transaction mode before 1.21), add default_query_exec_mode=exec to the data
// source name.
//
// # The caller's transaction
//
// [Bind] gives a store inside a transaction of the caller's, so that a response
// and the caller's own rows commit together or not at all.
//
// The driver is pgx. It is linked by this package and by no other.
package postgres
