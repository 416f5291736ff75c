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
	Campaign      string   `required:"" placeholder:"UUID" help:"The campaign."`
	Format        string   `enum:"csv,ndjson" default:"csv" help:"csv: a table, in which several values share a cell, and what a spreadsheet might run has an apostrophe; ndjson: exact, one response a line."`
	Out           string   `placeholder:"FILE" help:"Where to write, readable by its owner only; it must not exist. Defaults to standard output."`
	Order         string   `enum:"asc,desc" default:"asc" help:"asc: oldest first, desc: newest first."`
	After         string   `placeholder:"UUID" help:"Go on after this response, the last one of an export before."`
	Status        []string `help:"Only responses in these states, separated by commas; a comma within one has a backslash before it."`
	Email         string   `help:"Only responses of this address, exactly."`
	Reference     string   `help:"Only the response with this reference."`
	CreatedAfter  string   `placeholder:"T" help:"Only responses made later than this: a time such as 2026-11-21T08:30:00Z, or how long ago, such as 2h."`
	CreatedBefore string   `placeholder:"T" help:"Only responses made earlier than this."`
	UpdatedAfter  string   `placeholder:"T" help:"Only responses changed later than this."`
}

// Help says what an export is.
func (*exportCmd) Help() string {
	return `Writes all responses of a campaign, in flat memory, whatever their number, beside a server that goes on. It ends with what
was there when it began. The API gives out the same: GET /v1/campaigns/UUID/responses.csv and .ndjson.`
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
	if _, err := c.query(""); err != nil { // before a database is opened
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
		m := std.meter(output{}, "export", inPieces("responses"))
		defer m.end()
		if m != nil && q.Filter.IsZero() && q.Page.After == "" { // otherwise counting costs as much as the rest
			q.Page.Limit = 1
			if page, err := svc.Responses.List(ctx, q); err == nil {
				m.begin("export", int64(page.Total))
			}
		}
		return c.into(std.out, func(w io.Writer) error {
			write := httpx.WriteCSV
			if c.Format == "ndjson" {
				write = httpx.WriteNDJSON
			}
			return write(ctx, w, e, func(n int) { m.set(int64(n)) })
		})
	})
}

// into has write write to the file of --out, which is not there if it fails, or to out.
func (c *exportCmd) into(out io.Writer, write func(io.Writer) error) error {
	if c.Out == "" {
		return write(out)
	}
	f, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("--out: there is a %s already", c.Out)}
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Out))
	}
	return nil
}
