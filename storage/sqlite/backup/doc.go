// Package backup copies a SQLite store with its files, and the keys of its secrets, to a directory while all of them are in
// use, and restores them.
//
//	m, err := backup.Write(ctx, "/backups/2026-11-23", store, files, &backup.Options{KeyFile: "secret.keys"})
//	m, err := backup.Restore(ctx, "/backups/2026-11-23", backup.Target{Database: "forms.db", Files: files, KeyFile: "secret.keys"}, nil)
//
// # Contents of a backup
//
//	manifest.json   what the backup has, and when and by what it was made
//	SHA256SUMS      of all that follows; "sha256sum --quiet -c SHA256SUMS" checks a copy
//	formsvc.db      the database
//	files/          the bytes of each file under its blobstore key
//	secret.keys     the keys, if they are included
//
// A backup appears under its name complete or not at all: until it is complete, its directory has the suffix ".incomplete".
// Only its owner can read it. Anyone with a backup has all answers of respondents, and with the keys can sign webhooks in
// the service's name.
//
// # Guarantees
//
// A backup has everything that was acknowledged before Write began, and may have later writes. It has every file that its
// database lists, with the SHA-256 listed there. The exceptions are files that were already damaged or missing, which
// [Manifest.Damaged] names.
//
// Files are written once and never change, so only deletions during the backup, such as by an erasure, need care. Write
// copies the existing files. Then it takes a snapshot of the database, copies the files that were added in between, and then
// the snapshot. If one of these files has been deleted, it takes another snapshot. Finally it removes the files that the
// copied database doesn't list.
//
// # What a restore does
//
// [Restore] creates the database as it was. Pending deliveries are sent, including those that were sent after the backup:
// receivers recognise them by their identifiers. Keys that were revoked after the backup work again, and people who were
// erased after it are back: revoke and erase them again. Readers of the feed continue at their positions and see new events,
// see sqlite.Store.Restored.
//
// Back up Postgres with its own tools.
package backup
