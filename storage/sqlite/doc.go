// Package sqlite keeps accounts, campaigns, responses, records of files, webhooks and the
// delivery queue in one SQLite database: there is nothing to install, and nothing to run
// beside the program.
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//
// # Durability
//
// [Open] sets write-ahead logging with synchronous=FULL and checks that both are in
// effect. When a call returns nil, its write survives a power loss. [OpenDB], for a
// database that your program has opened, checks this on the program's connections.
//
// The log is copied into the database file when it is 16 MB long ([Options.LogSize]),
// concurrently with writes. While a reader such as an export still needs the log, it
// grows further.
//
// On a full disk, writes that don't fit fail with formsvc.ErrNoSpace. Reads continue, and
// writes work again when there is room.
//
// # Concurrency
//
// SQLite has one writer. Concurrent writes share a commit (group commit): the first
// caller commits what is queued, and callers that arrive meanwhile form the next group.
// Reads run concurrently on their own connections. Several processes may use one file;
// each waits for the others up to [Options.BusyTimeout].
//
// # Deliveries
//
// The cost of finding due deliveries, claiming them and recording outcomes depends on the
// number of endpoints with work and on how much is claimed, not on the backlog.
// Deliveries of a deleted webhook stay until Prune removes them. A Wait ends at once when
// this store queues deliveries; those that other processes queue are found when its time
// is over.
//
// Events are in the feed in commit order, and readable as soon as they are committed.
//
// # Backups
//
// [Store.Backup] copies the database while it is in use. Package backup, below this one,
// does so together with files and keys, and restores all of it. A copy of the file by
// other tools while a program uses it isn't a backup: it misses what is only in the log.
// After restoring a copy, call Restored.
//
// # The caller's transaction
//
// [Bind] returns a store inside your transaction, so that a response and your own rows
// commit together or not at all. Open the database with [DSN].
//
// The driver is modernc.org/sqlite, which needs no C compiler. No other package links it
// in.
package sqlite
