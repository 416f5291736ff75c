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
	From        string `required:"" placeholder:"DSN" help:"Source database: sqlite:PATH or postgres://…."`
	To          string `placeholder:"DSN" help:"Target database. It must be empty; a SQLite file is created if missing."`
	FromBlobs   string `placeholder:"URL" help:"Source of the uploaded files, as in --blobs. Defaults to leaving the files where they are."`
	ToBlobs     string `placeholder:"URL" help:"Target of the uploaded files; required with --from-blobs."`
	SkipDamaged bool   `help:"Copy everything except the contents of damaged or missing files. Defaults to copying nothing if there are any."`
	Verify      bool   `xor:"what" help:"Compare the two databases and the files without changing anything; exit status 1 if they differ."`
	Cancel      bool   `xor:"what" help:"Cancel an interrupted copy, so that the database --from can be used again."`
}

// Help returns the detailed help.
func (*copyCmd) Help() string {
	return `Copies everything except sign-ins to the settings pages, compares both sides, and marks --from as moved. After that no server
starts on --from, and servers on --to send its pending webhooks. A server that still runs on --from rejects writes, so that
nothing it acknowledged is lost. If the copy fails, --from stays in use. If it is interrupted, run it again to continue.
The encryption keys (DATA/secret.keys or FORMSVC_SECRET_KEYS) stay the same.`
}

// Run copies, compares or cancels.
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
		_, _ = fmt.Fprintln(std.err, "Copy canceled. The source database can be used again; discard what was copied.")
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
	opts.Progress = showTransfer(std.progress(c.output))
	work := transfer.Copy
	if c.Verify {
		work = transfer.Verify
	}
	report, err := work(ctx, from, to, opts)
	return c.tell(g, std, &report, err)
}

// check rejects flags that can't be combined.
func (c *copyCmd) check() error {
	switch {
	case c.To == "" && !c.Cancel:
		return usageError{errors.New("--to: name the target database, as sqlite:PATH or postgres://…")}
	case c.To != "" && c.Cancel:
		return usageError{errors.New("--cancel: takes --from only; leave out --to")}
	case (c.FromBlobs == "") != (c.ToBlobs == ""):
		return usageError{errors.New("--from-blobs and --to-blobs: set both, or neither to leave the files where they are")}
	}
	return nil
}

// open opens a database without migrating it. With exists, a missing SQLite file is an error.
func (*copyCmd) open(ctx context.Context, g *global, flag, dsn string, ring *keyring.Keyring, exists bool) (store, error) {
	if dsn == "" {
		return nil, usageError{fmt.Errorf("%s: must not be empty", flag)}
	}
	scheme, path, err := schemeOf(flag, dsn)
	if err != nil {
		return nil, err
	}
	if scheme == "sqlite" && exists {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: there is no such database: %w", flag, err)
		}
	}
	one := *g
	one.DB = dsn
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

// showTransfer shows the progress of a copy: first in rows, then in bytes of files.
func showTransfer(shown *progress) func(transfer.Progress) {
	return func(p transfer.Progress) {
		format := inPieces("rows")
		if p.What == "files" {
			format = inBytes
		}
		shown.show(p.What, p.Done, p.All, format)
	}
}

// tell prints the result.
func (c *copyCmd) tell(g *global, std streams, r *transfer.Report, err error) error {
	for _, id := range r.Damaged {
		_, _ = fmt.Fprintf(std.err, "file %s is damaged or missing\n", id)
	}
	if err != nil {
		if errors.Is(err, formsvc.ErrCorrupt) && !c.Verify {
			err = fmt.Errorf("%w\nUse --skip-damaged to copy everything else", err)
		}
		return g.explainKeys(err)
	}
	var rows int64
	for _, t := range r.Tables {
		rows += t.Rows
	}
	done := "Both databases have the same %d rows in %d tables.\n"
	if !c.Verify {
		done = "Moved and compared %d rows in %d tables.\n"
	}
	_, _ = fmt.Fprintf(std.err, done, rows, len(r.Tables))
	if c.FromBlobs != "" {
		_, _ = fmt.Fprintf(std.err, "The same holds for %d files (%s).\n", r.Files-len(r.Damaged), inBytes(r.Bytes))
	}
	if !c.Verify {
		_, _ = fmt.Fprint(std.err, "No server starts on the old database anymore. Start your servers with --db set to the new one and with the same encryption keys.\n")
		if c.FromBlobs == "" {
			_, _ = fmt.Fprint(std.err, "Uploaded files stayed where they were: start your servers with the same --blobs or --data.\n")
		}
	}
	if c.JSON {
		return records(c.output, std.out, "", []transfer.Report{*r}, nil)
	}
	return nil
}
