// Package postgres keeps campaigns, responses, what is known of files, webhooks
// and the delivery queue in one Postgres database (14 or later), which any number
// of nodes may share.
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
// # Deliveries
//
// The cost of asking what is due, of claiming it and of recording what became of
// it depends on how many endpoints have work and on how much is claimed, not on
// how much is waiting. [Open] sets up its connections so that plans are made once
// and go by indexes; on the pool of the caller of [New] these statements are
// planned each time. Deliveries of a deleted webhook stay until Prune removes
// them.
//
// A Wait ends at once when any process queues deliveries, by LISTEN and NOTIFY,
// on one connection beside the pool. A process that has waited within the last 2
// seconds does not notify others: it has an engine of its own. Both are only to
// save time; whatever fails there is silent, and work is found when the time of a
// Wait is over.
//
// # The feed of events
//
// Events are in the order in which they were committed. Those about one response are in
// the order of its changes, also when many clients and transactions of hosts change it at
// once; of two changes of different responses that overlap in time either may be first.
// Only events older than every transaction still running are shown, so that none is
// missed that commits late. Therefore a transaction that has written something and stays open, in any
// database of the server, holds up the feed for as long: what others write
// meanwhile is stored and delivered, but listed only after it ends. A host that
// uses [Bind] should commit soon, and idle_in_transaction_session_timeout is worth
// setting.
//
// A dump that is restored on another server keeps its feed and the positions that
// readers have: Migrate, which Open calls, sees to it that new events come after
// the old ones. Nothing must write events between restoring and that. Call Restored too:
// then those who read events since the dump miss none that come afterwards. [Diagnose]
// says what is wrong with a database and its server.
//
// # Secrets
//
// With [Options.Keyring] the secrets of webhooks and the values of their headers
// are encrypted. The database knows which keys it needs: [Open] and CheckKeys
// fail without them. To change keys, put a new one in front of the keyring's
// others, in every process that uses the database, and call RotateSecrets; then
// the others can be removed. A value that does not open, because its key was lost
// or the value damaged, is shown as empty, and nothing is sent to the webhook
// until it has another.
//
// # Poolers
//
// The package needs no extension, and keeps in a session only prepared
// statements, settings of the planner and, on the connection of Wait, LISTEN. For
// a pooler that can't keep prepared statements (PgBouncer in transaction mode
// before 1.21), add default_query_exec_mode=exec to the data source name; behind
// any pooler in transaction mode, set [Options.NoListen], which that does too.
//
// # The caller's transaction
//
// [OpenDB] works on a database that the program has opened for itself. [Bind] gives a
// store inside a transaction of the caller's, so that a response and the caller's own
// rows commit together or not at all; [BindPgx] does for a transaction of pgx itself, as
// sqlc and River use it. In a transaction that is REPEATABLE READ or
// SERIALIZABLE a response that was changed, or that a file or signature was added to, since
// the transaction began can't be changed anymore: the server undoes it (SQLSTATE 40001),
// and the caller begins again.
//
// The driver is pgx. It is linked by this package and by no other.
package postgres
