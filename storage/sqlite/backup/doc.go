// Package backup copies a SQLite store together with its files, and the keys of its
// secrets, to a directory, while all of them are in use, and brings them back.
//
//	m, err := backup.Write(ctx, "/backups/2026-11-23", store, files, &backup.Options{KeyFile: "secret.keys"})
//	m, err := backup.Restore(ctx, "/backups/2026-11-23", backup.Target{Database: "forms.db", Files: files, KeyFile: "secret.keys"}, nil)
//
// # What is in it
//
//	manifest.json   what this is, and when and by what it was made
//	SHA256SUMS      of all that follows; "sha256sum --quiet -c SHA256SUMS" checks a copy
//	formsvc.db      the database
//	files/          the bytes of each file under its blobstore key
//	secret.keys     the keys, if they were taken along
//
// A backup appears under its name as a whole or not at all: until then it is in a
// directory with ".incomplete" behind the name. All of it can be read by its owner only.
// Whoever has it has all that respondents wrote, and with the keys can sign webhooks in
// the service's name.
//
// # What is promised
//
// A backup has everything that was acknowledged before Write began; what is written
// meanwhile may be in it. Every file that its database knows is in it and has the SHA-256
// that the database knows, except those that were damaged or missing already, which
// [Manifest.Damaged] names.
//
// Files are written once and never change, so only those that go meanwhile need care, as
// by an erasure. Write copies the files that there are, then the database, then the files
// that came in between. Where one of these is gone by then, because it was deleted,
// it copies the database again. At last it removes the files that the copy doesn't know.
//
// # What comes back
//
// [Restore] makes the database as it was. Deliveries that were pending are sent, also
// those that were sent since the backup: receivers know them by their identifiers. Keys
// that were revoked since then work again, and people who were erased since then are
// back: that must be done again. Readers of the feed go on where they were and see what
// is new, see sqlite.Store.Restored.
//
// Backups of Postgres are made with its own tools.
package backup
