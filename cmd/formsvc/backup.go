package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

type backupCmd struct {
	output
	To           string `required:"" placeholder:"DIR" help:"Directory to create for the backup. It must not exist yet, but its parent directory must."`
	WithoutFiles bool   `help:"Leave out the uploaded files. For files that are backed up in another way, such as by the bucket's replication."`
	WithoutKeys  bool   `help:"Leave out the encryption keys. Keep a copy of the file DATA/secret.keys elsewhere: without it the webhook secrets are lost."`
}

// Help returns the detailed help.
func (*backupCmd) Help() string {
	return `Copies a SQLite database, the uploaded files and the encryption keys while servers keep running. DIR appears when the
backup is complete. Restore it with "formsvc restore". The exit status is 1 if files were damaged before; all other data is
in the backup then. Anyone who can read a backup can read all data in it: protect it like the original.`
}

// errPostgres explains how to back up a Postgres database.
var errPostgres = errors.New(`back up a Postgres database with its own tools:

  pg_dump --format=custom --file=formsvc.dump "$FORMSVC_DB"

Then copy the uploaded files, and keep a copy of the encryption keys. cmd/formsvc/BACKUP.md describes this and the restore`)

// Run makes a backup.
func (c *backupCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	scheme, _, err := g.scheme()
	if err != nil {
		return err
	}
	if scheme != "sqlite" {
		return errPostgres
	}
	var files blobstore.Store // nil: left out
	err = g.existing(ctx)
	if err == nil && !c.WithoutFiles {
		files, err = g.existingFiles()
	}
	if err != nil {
		return err
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	opened, err := g.openWith(ctx, ring, false) // any release may have created the schema
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()

	from := backup.Source{Files: files, Progress: std.bytesDone()}
	if !c.WithoutKeys && g.SecretKeys == "" {
		from.KeyFile = g.keyPath()
	}
	if from.Store, _ = opened.(*sqlite.Store); from.Store == nil {
		return errPostgres
	}
	made, err := backup.Write(ctx, c.To, from)
	return c.tell(g, std, &made, err)
}

// tell prints what the backup contains.
func (c *backupCmd) tell(g *global, std streams, m *backup.Summary, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("--to: %s or %s.incomplete already exists; choose another directory, or remove the .incomplete one if no backup is running", c.To, c.To)}
	}
	if err != nil && len(m.Damaged) == 0 {
		return g.explainKeys(err)
	}
	for _, id := range m.Damaged {
		std.note("file %s is damaged or missing, and not in the backup", id)
	}
	std.note("Backed up the database (%s) and %d files (%s).", inBytes(m.Database), m.Files, inBytes(m.FileBytes))
	if m.HasKeys {
		std.note("The backup includes the encryption keys: anyone who can read it can sign webhooks in your name.")
	} else if c.WithoutKeys || g.SecretKeys != "" {
		std.note("NOT INCLUDED: the encryption keys. Keep a copy of %s or FORMSVC_SECRET_KEYS elsewhere: without it the webhook secrets are lost.", g.keyPath())
	}
	if c.WithoutFiles {
		std.note("NOT INCLUDED: the uploaded files.")
	}
	if c.JSON {
		return errors.Join(err, c.printJSON(std, nil, m))
	}
	_, printErr := fmt.Fprintln(std.out, c.To)
	return errors.Join(err, printErr)
}

// bytesDone returns the progress of a backup or a restore.
func (s streams) bytesDone() func(int64) {
	show := s.progress()
	return func(n int64) { show("files: %s", inBytes(n)) }
}
