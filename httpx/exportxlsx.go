package httpx

import (
	"bufio"
	"context"
	"io"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/xlsx"
)

// cellKinds are the kinds of cells for answers to questions; others are texts.
var cellKinds = map[formsvc.ModuleType]xlsx.Kind{formsvc.NumberModule: xlsx.Number, formsvc.DateModule: xlsx.Date} //nolint:gochecknoglobals // immutable

// exportXLSX sends the responses as a workbook for people.
func (h *Handler) exportXLSX(c *call) error {
	return h.exportForPeople(c, typeXLSX, ".xlsx", func(p *people.Request, chosen []string) exportFormat {
		return func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
			return h.writeWorkbook(ctx, e, to, p, chosen, func(*formsvc.Response) filePlace {
				return func(f *formsvc.File) string { return p.Files + string(f.ID) }
			})
		}
	})
}

// exportForPeople sends the requested responses. Without files:read, keys see no files.
func (h *Handler) exportForPeople(c *call, mediaType []string, extension string, format func(*people.Request, []string) exportFormat) error {
	q, err := c.exportQuery("column")
	if err != nil {
		return err
	}
	p := people.Of(c.r.Context())
	if p == nil {
		p = &people.Request{Zone: time.UTC, Files: h.address(c, files+"/"), NoFiles: c.needs(formsvc.FilesRead) != nil}
	}
	return h.export(c, &q, mediaType, extension, format(p, q.columns))
}

// writeWorkbook writes the responses as a workbook, whose cells with files are links to their places.
func (h *Handler) writeWorkbook(
	ctx context.Context, e *formsvc.Export, to io.Writer, p *people.Request, chosen []string, places func(*formsvc.Response) filePlace,
) error {
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
		if err == nil && !p.NoFiles {
			var links []string
			links, err = h.fileLinks(ctx, r, t.files, places(r))
			for i, text := range links {
				cells[len(t.names)+i] = xlsx.Cell{Kind: xlsx.Link, Text: text}
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
		{Kind: xlsx.Time, Time: r.CreatedAt.In(zone)}, {Kind: xlsx.Time, Time: r.UpdatedAt.In(zone)}, {Kind: xlsx.Time, Time: r.CompletedAt.In(zone)},
	} {
		if at := t.fixed[i]; at >= 0 {
			cells[at] = cell
		}
	}
	return r.AllValues(func(name string, values []string) error {
		i, m, err := t.column(name)
		switch {
		case i < 0:
		case m != nil && len(values) == 1 && cells[i].Text == "":
			cells[i] = xlsx.Cell{Kind: cellKinds[m.Type], Text: m.ShownValues(values)}
		default: // a module may be named as metadata is
			cells[i] = xlsx.Cell{Text: strings.TrimPrefix(cells[i].Text+"; "+m.ShownValues(values), "; ")}
		}
		return err
	})
}
