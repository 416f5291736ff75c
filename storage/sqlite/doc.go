// Package sqlite keeps campaigns, responses, what is known of files, webhooks and
// the delivery queue in one SQLite database: nothing to install, nothing to run
// beside the program.
//
//	store, err := sqlite.Open(ctx, "forms.db", nil)
//
// # Durability
//
// [Open] sets write-ahead logging with synchronous=FULL and checks that both
// are in force: when a call returns nil, what it wrote survives a power cut.
// [OpenDB], on a database that the program has opened for itself, checks it on the
// program's connections.
//
// The log is moved into the database file when it is 16 MB long
// ([Options.LogSize]), beside whoever
// writes. It grows further while a reader, as of an export, still needs it.
//
// A full disk fails what does not fit, with formsvc.ErrNoSpace; reads go on, and
// so do writes when there is room again.
//
// # Concurrency
//
// SQLite has one writer. Concurrent writes share a commit (group commit): the
// first caller commits what is waiting, who arrives meanwhile forms the next
// group. Reads run beside it on connections of their own. Several processes may
// use one file; each waits for the others up to [Options.BusyTimeout].
//
// # Deliveries
//
// The cost of asking what is due, of claiming it and of recording what became of
// it depends on how many endpoints have work and on how much is claimed, not on
// how much is waiting. Deliveries of a deleted webhook stay until Prune removes
// them. A Wait ends at once when this store queues deliveries; those that other
// processes queue are found when its time is over.
//
// Events are in the feed in the order in which they were committed, and can be
// read as soon as they are.
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
// # Backups
//
// [Store.Backup] copies the database while it is in use; package backup below this one
// does so together with files and keys, and brings all of it back. Copying the file with
// other tools while a program uses it is no backup: what is only in the log is missing.
// After bringing one back, call Restored. [Diagnose] says what is wrong with a database.
//
// # The caller's transaction
//
// [Bind] gives a store inside a transaction of the caller's, so that a response
// and the caller's own rows commit together or not at all. [DSN] is how the caller opens
// the database.
//
// The driver is modernc.org/sqlite, which needs no C compiler. It is linked by
// this package and by no other.
package sqlite
