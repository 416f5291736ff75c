package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/transfer"
)

type copyCmd struct {
	output
	From        string `required:"" placeholder:"DSN" help:"Source database: sqlite:PATH or postgres://…."`
	To          string `required:"" placeholder:"DSN" help:"Target database. It must be empty; a SQLite file is created if missing."`
	FromBlobs   string `placeholder:"URL" help:"Source of the uploaded files, as in --blobs. Defaults to leaving the files where they are."`
	ToBlobs     string `placeholder:"URL" help:"Target of the uploaded files; required with --from-blobs."`
	SkipDamaged bool   `help:"Copy everything except the contents of damaged or missing files. Defaults to copying nothing if there are any."`
	Verify      bool   `help:"Compare the two databases and the files without changing anything; exit status 1 if they differ."`
}

// Help returns the detailed help.
func (*copyCmd) Help() string {
	return `Copies everything except sign-ins to the console, compares both sides, and marks --from as moved. Stop the servers on
both first: after the copy no server starts on --from, and one that still runs there can't write. If the copy fails or is
interrupted, --from stays in use; run it again: it starts over, or asks you to remove the target. The encryption keys
(DATA/secret.keys or FORMSVC_SECRET_KEYS) stay the same.`
}

// Run copies or compares.
func (c *copyCmd) Run(ctx context.Context, g *global, std streams) (err error) {
	if (c.FromBlobs == "") != (c.ToBlobs == "") {
		return usageError{errors.New("--from-blobs and --to-blobs: set both, or neither to leave the files where they are")}
	}
	if err := errors.Join(check("--from", c.From, true), check("--to", c.To, c.Verify)); err != nil {
		return err
	}
	show := std.progress()
	opts := &transfer.Options{SkipDamaged: c.SkipDamaged, Progress: func(what string, n int64) { show("copying: %d %s", n, what) }}
	if opts.Keyring, err = g.keys(false); err != nil {
		return err
	}
	for _, x := range []struct {
		flag, url string
		to        *blobstore.Store
	}{{"--from-blobs", c.FromBlobs, &opts.FromBlobs}, {"--to-blobs", c.ToBlobs, &opts.ToBlobs}} {
		if x.url == "" {
			continue
		}
		one := *g
		one.Blobs = x.url
		if *x.to, err = one.openBlobs(); err != nil {
			return fmt.Errorf("%s: %w", x.flag, err)
		}
	}
	work := transfer.Copy
	if c.Verify {
		work = transfer.Verify
	}
	report, err := work(ctx, c.From, c.To, opts)
	return c.tell(g, std, &report, err)
}

// check checks a data source name. With exists, a missing SQLite file is an error.
func check(flag, dsn string, exists bool) error {
	if dsn == "" {
		return usageError{fmt.Errorf("%s: name the database, as sqlite:PATH or postgres://…", flag)}
	}
	scheme, path, err := schemeOf(flag, dsn)
	if err == nil && scheme == "sqlite" && exists {
		if _, err = os.Stat(path); err != nil {
			err = fmt.Errorf("%s: there is no such database: %w", flag, err)
		}
	}
	return err
}

// tell prints the result.
func (c *copyCmd) tell(g *global, std streams, r *transfer.Report, err error) error {
	for _, id := range r.Damaged {
		std.note("file %s is damaged or missing", id)
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
	if c.Verify {
		std.note("Both databases have the same %d rows in %d tables.", rows, len(r.Tables))
	} else {
		std.note("Moved and compared %d rows in %d tables.\nNo server starts on the old database anymore. "+
			"Start your servers with --db set to the new one and with the same encryption keys.", rows, len(r.Tables))
	}
	if c.FromBlobs != "" {
		std.note("The same holds for %d files (%s).", r.Files-len(r.Damaged), inBytes(r.Bytes))
	} else if !c.Verify {
		std.note("Uploaded files stayed where they were: start your servers with the same --blobs or --data.")
	}
	if c.JSON {
		return c.printJSON(std, nil, r)
	}
	return nil
}
