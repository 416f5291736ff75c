package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite/backup"
)

type restoreCmd struct {
	output
	From           string `xor:"way" placeholder:"DIR" help:"The backup. The place that --db, --data and --blobs name must be empty."`
	AfterPgRestore bool   `xor:"way" help:"The database was brought back with pg_restore, as a Postgres one is: make it ready, before a server uses it."`
	WithoutFiles   bool   `help:"Leave uploaded files where they are."`
}

// Help says what a restore does.
func (*restoreCmd) Help() string {
	return `Brings back what "formsvc backup" made: files, keys, and at last the database, so that no server can use half of it.
It writes over nothing. If it is cut off, run it again, and it goes on. Files that are damaged in the backup are named, the
rest comes back, and the exit status is 1. "formsvc files verify" reads all files once more.`
}

// aftermath is what operators have to know.
const aftermath = `Before a server starts:
  - API keys that were revoked after the backup work again: revoke them again (formsvc keys list, keys revoke).
  - People who were erased after the backup are back: erase them again (formsvc erase).
  - Webhooks get what was pending then, also what was sent since: receivers know it by its identifier.
`

// Run brings a backup back.
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
		return usageError{errors.New("--from: say which backup, or --after-pg-restore")}
	case scheme != "sqlite":
		return usageError{errors.New("--from: a Postgres database is brought back with pg_restore; then run this with --after-pg-restore (see cmd/formsvc/BACKUP.md)")}
	}
	if _, err := backup.Read(c.From); err != nil { // before anything is made
		return err
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	to := backup.Target{Database: path, KeyFile: g.keyPath()}
	b, err := g.openBlobs() // makes --data
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if !c.WithoutFiles {
		to.Files = b
	}
	m := std.meter(c.output, "looking", inBytes)
	defer m.end()
	made, err := backup.Restore(ctx, c.From, to, &backup.Options{Keyring: ring, Progress: showProgress(m)})
	m.end()
	return c.tell(g, std, &made, err)
}

// ready makes a Postgres database ready that pg_restore brought back.
func (c *restoreCmd) ready(ctx context.Context, g *global, std streams) (err error) {
	s, err := g.openExisting(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Restored(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprint(std.err, "The database is ready.\n", aftermath)
	return nil
}

// tell prints what is back.
func (c *restoreCmd) tell(g *global, std streams, m *backup.Manifest, err error) error {
	switch {
	case errors.Is(err, backup.ErrNotEmpty):
		return fmt.Errorf("%w\n\nA restore writes over nothing. If a server is running there, stop it; move what is there away, or\n"+
			"name another place with --data, --db and --blobs", err)
	case errors.Is(err, formsvc.ErrOtherBlobs):
		return g.explainBlobs(err)
	case errors.Is(err, keyring.ErrUnknownKey):
		return g.explainKeys(err)
	case err != nil && !errors.Is(err, backup.ErrDamaged) || m.Sums == "":
		return err
	case err != nil && c.unfinished(g):
		return err
	}
	for _, id := range m.Damaged {
		_, _ = fmt.Fprintf(std.err, "file %s is not back: it is damaged or missing in the backup\n", id)
	}
	_, _ = fmt.Fprintf(std.err, "What was there on %s is back: the database, with %d files (%s).\n%s",
		m.CreatedAt.Format(time.RFC3339), m.Files, inBytes(m.FileBytes), aftermath)
	if !m.HasKeys && g.SecretKeys == "" {
		_, _ = fmt.Fprintf(std.err, "  - The backup has no keys: %s must be the file that belongs to it.\n", g.keyPath())
	}
	if c.WithoutFiles || !m.HasFiles {
		_, _ = fmt.Fprintln(std.err, "  - No files were brought back: make sure that they are at --blobs, and run \"formsvc files verify\".")
	}
	if c.JSON {
		return errors.Join(err, records(c.output, std.out, "", []backup.Manifest{*m}, nil))
	}
	return err
}

// unfinished reports whether the database is not back.
func (c *restoreCmd) unfinished(g *global) bool {
	_, path, _ := g.scheme()
	_, err := os.Stat(path)
	return err != nil
}

// refuseUnfinished makes sure that no empty database is made where a restore was cut off.
func refuseUnfinished(path string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(backup.Unfinished(path)); err == nil {
		return fmt.Errorf("a restore to %s was cut off, or is under way: run \"formsvc restore\" again, or remove %s", path, backup.Unfinished(path))
	}
	return nil
}
