package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

type exportCmd struct {
	inAccount
	Campaign      recordID `required:"" placeholder:"UUID" help:"The campaign to export."`
	Format        string   `enum:"csv,ndjson" default:"csv" help:"Output format. csv: a table for spreadsheets, with several values in one cell and an apostrophe before formulas. ndjson: exact, one response a line."`
	Out           string   `placeholder:"FILE" help:"File to create, readable by its owner only. It must not exist yet. Defaults to standard output."`
	Order         string   `enum:"asc,desc" default:"asc" help:"Sort order. asc: oldest first, desc: newest first."`
	After         recordID `placeholder:"UUID" help:"Continue after this response, the last one of an earlier export."`
	Status        []string `help:"Only responses in these states, separated by commas. Write a backslash before a comma within a state."`
	Email         string   `help:"Only responses with exactly this e-mail address."`
	Reference     string   `help:"Only the response with this reference."`
	CreatedAfter  moment   `placeholder:"T" help:"Only responses created after this: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 2h."`
	CreatedBefore moment   `placeholder:"T" help:"Only responses created before this."`
	UpdatedAfter  moment   `placeholder:"T" help:"Only responses changed after this."`
}

// Help returns the detailed help.
func (*exportCmd) Help() string {
	return `Writes all responses of a campaign while servers keep running. Memory use stays the same for any number of responses. The
export ends with the responses that existed when it began. The API has the same: GET /v1/campaigns/UUID/responses.csv and
.ndjson.`
}

// Run writes the responses.
func (c *exportCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{}, func(svc *formsvc.Service, id formsvc.ID) error {
		e, err := svc.Responses.Export(ctx, formsvc.ResponseQuery{
			AccountID: id, CampaignID: formsvc.ID(c.Campaign), Page: formsvc.PageQuery{Ascending: c.Order == "asc", After: formsvc.ID(c.After)},
			Filter: formsvc.ResponseFilter{
				Status: c.Status, Email: c.Email, Reference: c.Reference,
				CreatedAfter: time.Time(c.CreatedAfter), CreatedBefore: time.Time(c.CreatedBefore), UpdatedAfter: time.Time(c.UpdatedAfter),
			},
		})
		if err != nil {
			return c.missing(err, "campaign", c.Campaign)
		}
		write, show := httpx.WriteCSV, std.progress()
		if c.Format == "ndjson" {
			write = httpx.WriteNDJSON
		}
		return writeOut(c.Out, std.out, func(w io.Writer) error {
			return write(ctx, &countingWriter{w: w, show: show}, e)
		})
	})
}

// A countingWriter shows how much was written.
type countingWriter struct {
	w    io.Writer
	n    int
	show func(format string, args ...any)
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	c.show("exporting: %d kB", c.n/1000)
	return n, err
}

// writeOut calls write with a new file, which is the value of --out, or with out if that is "". The file is removed if
// write fails.
func writeOut(path string, out io.Writer, write func(io.Writer) error) error {
	if path == "" {
		return write(out)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names it
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("--out: %s already exists; choose another name", path)}
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
