// Package sqlite keeps campaigns, responses, webhooks and the delivery queue in
// one SQLite database: nothing to install, nothing to run beside the program.
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//
// # Durability
//
// [Open] sets write-ahead logging with synchronous=FULL and checks that both
// are in force: when a call returns nil, what it wrote survives a power cut.
// [New] leaves that to the caller, whose database it is.
//
// # Concurrency
//
// SQLite has one writer. Concurrent writes share a commit (group commit): the
// first caller commits what is waiting, who arrives meanwhile forms the next
// group. Reads run beside it on connections of their own. Several processes may
// use one file; each waits for the others up to [Options.BusyTimeout].
//
// # The caller's transaction
//
// [Bind] gives a store inside a transaction of the caller's, so that a response
// and the caller's own rows commit together or not at all.
//
// The driver is modernc.org/sqlite, which needs no C compiler. It is linked by
// this package and by no other.
package sqlite
