package main

import (
	"context"
	"io"

	"github.com/formsvc/toolkit/formsvc"
)

type personCmd struct {
	Export personExportCmd `cmd:"" help:"Write a person's data, with the uploaded files, to a ZIP archive."`
}

type personExportCmd struct {
	inAccount
	output
	Email string `required:"" placeholder:"EMAIL" help:"E-mail address of the person whose data to export, in upper or lower case."`
	Out   string `required:"" placeholder:"FILE" help:"Archive to create, readable by its owner only. It must not exist yet."`
}

// Help returns the detailed help.
func (*personExportCmd) Help() string {
	return `Writes what "formsvc erase" would remove: the person's responses with their files, comments, signatures and events, the
person's signatures in other responses, and events that name the person. Each kind is a file with a JSON object in each line.
Servers may keep running, but responses that are submitted meanwhile may be missing. The audit trail gets an entry without the
address.`
}

// Run writes the archive and prints the receipt.
func (c *personExportCmd) Run(ctx context.Context, g *global, std streams) error {
	return c.with(ctx, g, need{files: true}, func(svc *formsvc.Service, id formsvc.ID) error {
		var r formsvc.Receipt
		err := writeOut(c.Out, std.out, func(w io.Writer) (err error) {
			r, err = svc.Accounts.ExportPerson(ctx, id, c.Email, w)
			return err
		})
		if err != nil {
			return err
		}
		if r.BlobsLeft > 0 {
			std.note("The contents of %d files are missing or damaged; receipt.json in the archive names them.", r.BlobsLeft)
		}
		return c.printCounts(std, &r)
	})
}
