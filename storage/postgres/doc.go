// Package postgres keeps accounts, campaigns, responses, records of files, webhooks and the delivery
// queue in one Postgres database (14 or later), which any number of nodes may share.
//
//	store, err := postgres.Open(ctx, "postgres://localhost/forms", nil)
//
// # Durability
//
// [Open] refuses a server that doesn't wait for its log (synchronous_commit). When a call returns
// nil, its write survives the loss of the node. Only with synchronous replication does it survive
// the loss of the server.
//
// # Concurrency
//
// New responses that arrive at the same time are written by one statement, which is one transaction
// (group commit). A response that can't be written is left out and fails alone. Other writes have
// their own transactions.
//
// # Deliveries
//
// The cost of finding due deliveries, claiming them and recording outcomes depends on the number of
// endpoints with work and on how much is claimed, not on the backlog. [Open] configures its
// connections so that plans are made once and use indexes. On a pool passed to [New] these statements
// are planned each time. Deliveries of a deleted webhook stay until Prune removes them.
//
// A Wait ends at once when any process queues deliveries, through LISTEN and NOTIFY on one connection
// outside the pool. A process that has waited within the last 2 seconds doesn't notify others,
// because it has an engine of its own. Both only save time: failures are ignored, and work is found
// when the time of a Wait is over.
//
// # The event feed
//
// Events are in commit order. Those about one response are in the order of its changes, even if many
// clients and transactions of the host application change it at once. If changes of different
// responses overlap in time, either may come first. The feed shows only events older than every
// transaction still running, so that a late commit isn't missed. Therefore a transaction that has
// written something and stays open, in any database of the server, holds up the feed. Meanwhile other
// events are stored and delivered, but not listed until it ends. If you use [Bind], commit soon, and
// set idle_in_transaction_session_timeout.
//
// A dump restored on another server keeps its feed and the positions of readers. Migrate, which Open
// calls, makes new events follow the old ones. Don't write events between the restore and that call.
// Call Restored, too: it keeps readers that have read beyond the dump from missing new events.
//
// # Poolers
//
// The package needs no extension. In a session it keeps only prepared statements, settings and, on
// the connection of Wait, LISTEN. [Open] notices a pooler such as PgBouncer and then does without them.
// A pooler that keeps prepared statements is faster with default_query_exec_mode=cache_statement in the
// data source name, and [Options.NoListen] in transaction mode.
//
// # The caller's transaction
//
// [OpenDB] works on a database that your program has opened. [Bind] returns a store inside your
// transaction, so that a response and your own rows commit together or not at all. With a pool of
// pgx, see its example. A REPEATABLE READ or SERIALIZABLE
// transaction can't change a response that was changed, or got a file or signature, after the
// transaction began. The server rolls it back (SQLSTATE 40001), and you have to retry it.
//
// The driver is pgx. No other package links it in.
package postgres
