package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/transfer"
)

type copyCmd struct {
	output
	From        string `required:"" placeholder:"DSN" help:"The database that has the data: sqlite:PATH or postgres://…."`
	To          string `placeholder:"DSN" help:"The database that is to have it. It must be empty; a file is made if missing."`
	FromBlobs   string `placeholder:"URL" help:"Where the bytes of uploaded files are, as in --blobs. Defaults to leaving them where they are."`
	ToBlobs     string `placeholder:"URL" help:"Where they go; with --from-blobs."`
	SkipDamaged bool   `help:"Go on without the bytes of files that are damaged or missing. Defaults to copying nothing then."`
	Verify      bool   `xor:"what" help:"Compare the two databases and the files, and change nothing; exit status 1 if they differ."`
	Cancel      bool   `xor:"what" help:"Give up a copy that was cut off: the database --from can be used again."`
}

// Help says what a copy does.
func (*copyCmd) Help() string {
	return `Copies everything but who is signed in to the settings, compares both sides, and marks --from as moved: no server starts on it
anymore, and webhooks that wait are sent by the new one. A server that runs on --from meanwhile refuses to write, so that nothing
it acknowledged is lost. If the copy fails, --from is in use as before; if it is killed, run it again and it goes on.
The keys of the secrets (DATA/secret.keys or FORMSVC_SECRET_KEYS) stay the same.`
}

// Run copies, compares or gives up.
func (c *copyCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	ring, err := g.keys(false)
	if err != nil {
		return err
	}
	from, err := c.open(ctx, g, "--from", c.From, ring, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if c.Cancel {
		if err := transfer.Cancel(ctx, from); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(std.err, "The copy is given up: the database can be used again. What was copied of it is of no use.")
		return nil
	}
	to, err := c.open(ctx, g, "--to", c.To, ring, c.Verify)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	opts := &transfer.Options{SkipDamaged: c.SkipDamaged}
	if c.FromBlobs != "" {
		files, err := c.openBlobs(g, "--from-blobs", c.FromBlobs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, files.Close()) }()
		there, err := c.openBlobs(g, "--to-blobs", c.ToBlobs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, there.Close()) }()
		opts.FromBlobs, opts.ToBlobs = files, there
	}
	m := std.meter(c.output, "looking", inPieces("rows"))
	defer m.end()
	opts.Progress = showTransfer(m)
	work := transfer.Copy
	if c.Verify {
		work = transfer.Verify
	}
	report, err := work(ctx, from, to, opts)
	m.end()
	return c.tell(g, std, &report, err)
}

// check refuses flags that don't go together.
func (c *copyCmd) check() error {
	switch {
	case c.To == "" && !c.Cancel:
		return usageError{errors.New("--to: say where the data goes, as sqlite:PATH or postgres://…")}
	case c.To != "" && c.Cancel:
		return usageError{errors.New("--cancel: only --from is needed, without --to")}
	case (c.FromBlobs == "") != (c.ToBlobs == ""):
		return usageError{errors.New("--from-blobs and --to-blobs: give both, or none to leave the files where they are")}
	}
	return nil
}

// open opens a database as it is. One that must exist is not made.
func (*copyCmd) open(ctx context.Context, g *global, flag, dsn string, ring *keyring.Keyring, exists bool) (store, error) {
	if dsn == "" {
		return nil, usageError{fmt.Errorf("%s: must not be empty", flag)}
	}
	one := *g
	one.DB = dsn
	scheme, path, err := one.scheme()
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	if scheme == "sqlite" && exists {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: there is no such database: %w", flag, err)
		}
	}
	s, err := one.openWith(ctx, ring, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return s, nil
}

func (*copyCmd) openBlobs(g *global, flag, url string) (blobs, error) {
	one := *g
	one.Blobs = url
	b, err := one.openBlobs()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return b, nil
}

// showTransfer shows how far a copy is. What it does changes from rows to bytes of files.
func showTransfer(m *meter) func(transfer.Progress) {
	what := ""
	return func(p transfer.Progress) {
		if m == nil {
			return
		}
		if what != p.What {
			what = p.What
			count := inPieces("rows")
			if p.What == "files" {
				count = inBytes
			}
			m.beginCounting(p.What, p.All, count)
		}
		m.set(p.Done)
	}
}

// tell says what was done.
func (c *copyCmd) tell(g *global, std streams, r *transfer.Report, err error) error {
	for _, id := range r.Damaged {
		_, _ = fmt.Fprintf(std.err, "file %s is damaged or missing\n", id)
	}
	if err != nil {
		if errors.Is(err, formsvc.ErrCorrupt) && !c.Verify {
			err = fmt.Errorf("%w\n--skip-damaged copies all others", err)
		}
		return g.explainKeys(err)
	}
	var rows int64
	for _, t := range r.Tables {
		rows += t.Rows
	}
	done := "Both have the same %d rows in %d tables.\n"
	if !c.Verify {
		done = "All %d rows in %d tables are moved, and were compared.\n"
	}
	_, _ = fmt.Fprintf(std.err, done, rows, len(r.Tables))
	if c.FromBlobs != "" {
		_, _ = fmt.Fprintf(std.err, "So are %d files (%s).\n", r.Files-len(r.Damaged), inBytes(r.Bytes))
	}
	if !c.Verify {
		_, _ = fmt.Fprint(std.err, "No server starts on the old database anymore. Start servers with --db set to the new one, and the keys they had.\n")
		if c.FromBlobs == "" {
			_, _ = fmt.Fprint(std.err, "Uploaded files are where they were: start servers with the same --blobs, or --data.\n")
		}
	}
	if c.JSON {
		return records(c.output, std.out, "", []transfer.Report{*r}, nil)
	}
	return nil
}
