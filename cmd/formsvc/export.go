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
	Campaign      string   `required:"" placeholder:"UUID" help:"The campaign to export."`
	Format        string   `enum:"csv,ndjson" default:"csv" help:"Output format. csv: a table for spreadsheets, with several values in one cell and an apostrophe before formulas. ndjson: exact, one response a line."`
	Out           string   `placeholder:"FILE" help:"File to create, readable by its owner only. It must not exist yet. Defaults to standard output."`
	Order         string   `enum:"asc,desc" default:"asc" help:"Sort order. asc: oldest first, desc: newest first."`
	After         string   `placeholder:"UUID" help:"Continue after this response, the last one of an earlier export."`
	Status        []string `help:"Only responses in these states, separated by commas. Write a backslash before a comma within a state."`
	Email         string   `help:"Only responses with exactly this e-mail address."`
	Reference     string   `help:"Only the response with this reference."`
	CreatedAfter  string   `placeholder:"T" help:"Only responses created after this: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 2h."`
	CreatedBefore string   `placeholder:"T" help:"Only responses created before this."`
	UpdatedAfter  string   `placeholder:"T" help:"Only responses changed after this."`
}

// Help returns the detailed help.
func (*exportCmd) Help() string {
	return `Writes all responses of a campaign while servers keep running. Memory use stays the same for any number of responses. The
export ends with the responses that existed when it began. The API has the same: GET /v1/campaigns/UUID/responses.csv and
.ndjson.`
}

// query reads the flags.
func (c *exportCmd) query(account formsvc.ID) (formsvc.ResponseQuery, error) {
	q := formsvc.ResponseQuery{
		AccountID: account, Page: formsvc.PageQuery{Ascending: c.Order == "asc"},
		Filter: formsvc.ResponseFilter{Status: c.Status, Email: c.Email, Reference: c.Reference},
	}
	var err error
	if q.CampaignID, err = parseID(c.Campaign); err != nil {
		return q, usageError{fmt.Errorf("--campaign: %w", err)}
	}
	if c.After != "" {
		if q.Page.After, err = parseID(c.After); err != nil {
			return q, usageError{fmt.Errorf("--after: %w", err)}
		}
	}
	for _, f := range []struct {
		name, text string
		to         *time.Time
	}{
		{"--created-after", c.CreatedAfter, &q.Filter.CreatedAfter}, {"--created-before", c.CreatedBefore, &q.Filter.CreatedBefore},
		{"--updated-after", c.UpdatedAfter, &q.Filter.UpdatedAfter},
	} {
		if f.text == "" {
			continue
		}
		if *f.to, err = parseSince(f.text, time.Now()); err != nil {
			return q, usageError{fmt.Errorf("%s: %w", f.name, err)}
		}
	}
	return q, nil
}

// Run writes the responses.
func (c *exportCmd) Run(ctx context.Context, g *global, std streams) error {
	if _, err := c.query(""); err != nil { // before the database is opened
		return err
	}
	return c.with(ctx, g, func(svc *formsvc.Service, id formsvc.ID) error {
		q, err := c.query(id)
		if err != nil {
			return err
		}
		e, err := svc.Responses.Export(ctx, q)
		if errors.Is(err, formsvc.ErrNotFound) {
			return fmt.Errorf("account %q has no campaign %s", c.Account, q.CampaignID)
		}
		if err != nil {
			return err
		}
		shown := std.progress(output{})
		return writeOut(c.Out, std.out, func(w io.Writer) error {
			write := httpx.WriteCSV
			if c.Format == "ndjson" {
				write = httpx.WriteNDJSON
			}
			return write(ctx, w, e, func(n int) { shown.show("export", int64(n), 0, inPieces("responses")) })
		})
	})
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
