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
	To           string `required:"" placeholder:"DIR" help:"Where to put the backup. It must not exist; the directory above it must."`
	WithoutFiles bool   `help:"Leave out uploaded files, which are kept safe in another way, such as by the bucket's own replication."`
	WithoutKeys  bool   `help:"Leave out the keys of the secrets. Keep a copy of the file DATA/secret.keys elsewhere then: without it the secrets are lost."`
}

// Help says what a backup is.
func (*backupCmd) Help() string {
	return `Copies a SQLite database, the uploaded files and the keys of the secrets, while servers go on. DIR appears when it is
whole. "formsvc restore" brings it back. Exit status 1 also when files were damaged before; the rest is safe then.
Whoever can read a backup has everything in it: keep it as safe as the original.`
}

// errPostgres says how the other database is backed up.
var errPostgres = errors.New(`a Postgres database is backed up with its own tools, which know it best:

  pg_dump --format=custom --file=formsvc.dump "$FORMSVC_DB"

Copy the files after that, and keep a copy of the keys; cmd/formsvc/BACKUP.md has all of it, and the way back`)

// Run makes a backup.
func (c *backupCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	scheme, _, err := g.scheme()
	if err != nil {
		return err
	}
	if scheme != "sqlite" {
		return errPostgres
	}
	if err := g.existing(ctx); err != nil {
		return err
	}
	if !c.WithoutFiles {
		if err := g.existingFiles(); err != nil {
			return err
		}
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	opened, err := g.openWith(ctx, ring, false) // whatever release made the schema
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	var files blobstore.Store // nil: left out
	if !c.WithoutFiles {
		b, err := g.openBlobs()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		files = b
	}

	m := std.meter(c.output, "looking", inBytes)
	defer m.end()
	opts := &backup.Options{Keyring: ring, Release: release(), Progress: showProgress(m)}
	if !c.WithoutKeys && g.SecretKeys == "" {
		opts.KeyFile = g.keyPath()
	}
	rows, ok := opened.(*sqlite.Store)
	if !ok {
		return errPostgres
	}
	made, err := backup.Write(ctx, c.To, rows, files, opts)
	m.end()
	return c.tell(g, std, &made, err)
}

// tell prints what was made.
func (c *backupCmd) tell(g *global, std streams, m *backup.Manifest, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("--to: there is a %s already, or a %s.incomplete: of a backup that is under way, or that was cut off and can be removed", c.To, c.To)}
	}
	if err != nil && !errors.Is(err, backup.ErrDamaged) || m.Format == 0 {
		return g.explainKeys(err)
	}
	for _, id := range m.Damaged {
		_, _ = fmt.Fprintf(std.err, "file %s is damaged or missing, and not in the backup\n", id)
	}
	_, _ = fmt.Fprintf(std.err, "The database (%s) and %d files (%s) are backed up.\n", inBytes(m.Database), m.Files, inBytes(m.FileBytes))
	switch {
	case g.SecretKeys != "":
		_, _ = fmt.Fprintln(std.err, "NOT IN IT: the keys of FORMSVC_SECRET_KEYS. Keep a copy of them elsewhere: without it the secrets of webhooks are lost.")
	case c.WithoutKeys:
		_, _ = fmt.Fprintf(std.err, "NOT IN IT: the keys. Keep a copy of %s elsewhere: without it the secrets of webhooks are lost.\n", g.keyPath())
	case m.HasKeys:
		_, _ = fmt.Fprintln(std.err, "It has the keys of the secrets: whoever can read it can sign webhooks in your name.")
	}
	if c.WithoutFiles {
		_, _ = fmt.Fprintln(std.err, "NOT IN IT: the uploaded files.")
	}
	if c.JSON {
		return errors.Join(err, records(c.output, std.out, "", []backup.Manifest{*m}, nil))
	}
	_, printErr := fmt.Fprintln(std.out, c.To)
	return errors.Join(err, printErr)
}

// showProgress shows how far a backup or a restore has come.
func showProgress(m *meter) func(backup.Progress) {
	stage := ""
	return func(p backup.Progress) {
		if p.Stage != stage {
			stage = p.Stage
			m.begin(stage, p.All)
		}
		m.set(p.Done)
	}
}
