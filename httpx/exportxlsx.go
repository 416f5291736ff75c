package httpx

import (
	"bufio"
	"io"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/xlsx"
)

// exportXLSX sends the responses as a workbook for people.
func (h *Handler) exportXLSX(c *call) error {
	return h.exportForPeople(c, typeXLSX, ".xlsx", func(c *call, e *formsvc.Export, to *bufio.Writer, p *people.Request, chosen []string) error {
		return writeWorkbook(c, e, to, p, chosen, func(*formsvc.Response) filePlace {
			return func(f *formsvc.File) string { return p.Files + string(f.ID) }
		})
	})
}

// writeWorkbook writes the responses as a workbook, whose cells with files are links to their places.
func writeWorkbook(c *call, e *formsvc.Export, to io.Writer, p *people.Request, chosen []string, places func(*formsvc.Response) filePlace) error {
	ctx := c.r.Context()
	t, err := peopleTable(ctx, e, p, chosen)
	if err != nil {
		return err
	}
	cells := make([]xlsx.Cell, len(t.header))
	w := xlsx.NewWriter(to, t.header)
	for r, err := range e.All(ctx) {
		if err == nil {
			err = t.setTyped(cells, r)
		}
		if err == nil && p.Files != "" {
			var links []string
			links, err = c.h.fileLinks(ctx, r, t.files, places(r))
			for i, text := range links {
				cells[len(t.cells)+i] = xlsx.Link(text)
			}
		}
		if err == nil {
			err = w.Row(cells)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// setTyped fills the cells of a workbook's row as [table.set] fills those of a record.
func (t *table) setTyped(cells []xlsx.Cell, r *formsvc.Response) error {
	clear(cells)
	zone := t.people.Zone
	for i, cell := range [...]xlsx.Cell{
		{Text: string(r.ID)}, {Text: r.Reference}, {Text: r.Status}, {Text: r.User.Email}, {Text: r.User.FirstName}, {Text: r.User.LastName},
		xlsx.Time(r.CreatedAt.In(zone)), xlsx.Time(r.UpdatedAt.In(zone)), xlsx.Time(r.CompletedAt.In(zone)),
	} {
		if at := t.fixed[i]; at >= 0 {
			cells[at] = cell
		}
	}
	return r.AllValues(func(name string, values []string) error {
		i, m, err := t.column(name)
		switch text := m.ShownValues(values); {
		case i < 0:
		case m != nil && m.Type.Numeric() && len(values) == 1:
			cells[i] = xlsx.Number(text)
		case m != nil && m.Type == formsvc.DateModule && len(values) == 1:
			cells[i] = xlsx.Date(text)
		default:
			cells[i].Text = strings.TrimPrefix(cells[i].Text+"; "+text, "; ") // a module may be named as metadata is
		}
		return err
	})
}
