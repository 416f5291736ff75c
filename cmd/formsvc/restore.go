package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

type restoreCmd struct {
	output
	From           string `xor:"way" placeholder:"DIR" help:"Directory of the backup. The targets --db and --data must be empty; --blobs may have files of the same database."`
	AfterPgRestore bool   `xor:"way" help:"Prepare a Postgres database that pg_restore has restored, before a server uses it."`
	WithoutFiles   bool   `help:"Leave uploaded files where they are."`
}

// Help returns the detailed help.
func (*restoreCmd) Help() string {
	return `Restores what "formsvc backup" wrote: files, keys, and the database last, so that no server can use an incomplete restore.
It overwrites nothing. If it is interrupted, run it again to continue. If files are damaged in the backup, they are named, all
other data is restored, and the exit status is 1. "formsvc files verify" reads all files once more.`
}

// aftermath tells operators what to do after a restore.
const aftermath = `Before you start a server:
  - API keys that were revoked after the backup work again: revoke them again (formsvc keys list, keys revoke).
  - People who were erased after the backup are back: erase them again (formsvc erase).
  - Deliveries that were pending at the backup are sent, even if they were sent since: receivers know them by their identifiers.`

// Run restores a backup.
func (c *restoreCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	scheme, path, err := g.scheme()
	switch {
	case err != nil:
		return err
	case c.AfterPgRestore && scheme == "sqlite":
		return usageError{errors.New("--after-pg-restore: needs --db postgres://…")}
	case c.AfterPgRestore:
		return c.ready(ctx, g, std)
	case c.From == "":
		return usageError{errors.New("--from: name the backup, or use --after-pg-restore")}
	case scheme != "sqlite":
		return usageError{errors.New("--from: restore a Postgres database with pg_restore, then run this with --after-pg-restore (see cmd/formsvc/BACKUP.md)")}
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	to := backup.Target{Database: path, KeyFile: g.keyPath(), Keyring: ring, Progress: std.bytesDone()}
	if err := os.MkdirAll(g.Data, 0o700); err != nil {
		return err
	}
	b, err := g.openBlobs()
	if err != nil {
		return err
	}
	if !c.WithoutFiles {
		to.Files = b
	}
	made, err := backup.Restore(ctx, c.From, to)
	return c.tell(g, std, &made, err)
}

// ready prepares a Postgres database that pg_restore has restored.
func (c *restoreCmd) ready(ctx context.Context, g *global, std streams) (err error) {
	if err := g.existing(ctx); err != nil {
		return err
	}
	s, err := g.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Restored(ctx); err != nil {
		return err
	}
	std.note("The database is ready.\n%s", aftermath)
	return nil
}

// tell prints what was restored.
func (c *restoreCmd) tell(g *global, std streams, m *backup.Summary, err error) error {
	switch {
	case errors.Is(err, backup.ErrNotEmpty):
		return fmt.Errorf("%w\n\nA restore overwrites nothing. If a server is running there, stop it. Then move the existing data away, or\n"+
			"set --data, --db and --blobs to another place", err)
	case err != nil && len(m.Damaged) == 0:
		return g.explainKeys(g.explainBlobs(err))
	}
	for _, id := range m.Damaged {
		std.note("file %s was not restored: it is damaged or missing in the backup", id)
	}
	std.note("Restored the database and %d files (%s).\n%s", m.Files, inBytes(m.FileBytes), aftermath)
	if !m.HasKeys && g.SecretKeys == "" {
		std.note("  - The backup has no encryption keys: %s must be the key file of its database.", g.keyPath())
	}
	if c.WithoutFiles || !m.HasFiles {
		std.note("  - No files were restored: make sure that they are at --blobs, and run \"formsvc files verify\".")
	}
	if c.JSON {
		return errors.Join(err, c.printJSON(std, nil, m))
	}
	return err
}

// refuseUnfinished fails if a restore to path is incomplete, so that no empty database is created there.
func refuseUnfinished(path string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(backup.Unfinished(path)); err == nil {
		return fmt.Errorf("a restore to %s is running or was interrupted: run \"formsvc restore\" again, or remove %s", path, backup.Unfinished(path))
	}
	return nil
}
