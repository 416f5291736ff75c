package httpx

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/xlsx"
)

// exportXLSX sends the responses as a workbook for people.
func (h *Handler) exportXLSX(c *call) error {
	return h.exportForPeople(c, typeXLSX, ".xlsx", func(c *call, e *formsvc.Export, to *bufio.Writer, p *people.Request, chosen []string) error {
		return writeWorkbook(c, e, to, p, chosen, addresses(p))
	})
}

// writeWorkbook writes the responses as a workbook, whose cells with files are links to their places.
func writeWorkbook(c *call, e *formsvc.Export, to io.Writer, p *people.Request, chosen []string, places func(*formsvc.Response) filePlace) error {
	t, err := peopleTable(c, e, p, chosen, places)
	if err != nil {
		return err
	}
	cells := make([]xlsx.Cell, len(t.header))
	w := xlsx.NewWriter(to, t.header)
	set := func(r *formsvc.Response) error { return t.setTyped(cells, r) }
	err = t.each(c.r.Context(), e, set, func(links []string) error {
		for i, text := range links {
			cells[len(t.cells)+i] = xlsx.Link(text)
		}
		return w.Row(cells)
	})
	if err != nil {
		return err
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

// peopleHeaders are the headers of the fixed columns for people.
var peopleHeaders = map[string]string{ //nolint:gochecknoglobals // immutable
	"uuid": "ID", "reference": "Reference", "status": "Status", "firstName": "First name", "lastName": "Last name", "email": "E-mail",
	"createdAt": "Submitted", "updatedAt": "Changed", "completedAt": "Completed",
}

// peopleTable returns a table for people, with the chosen columns, or with all that matter to them if there are none. Further headers are
// those of files, which are at these places.
func peopleTable(c *call, e *formsvc.Export, p *people.Request, chosen []string, places func(*formsvc.Response) filePlace) (*table, error) {
	after := []string{"firstName", "lastName", "email", "createdAt", "completedAt"}
	t, err := tableOf(c.r.Context(), e, chosen, []string{"reference", "status"}, after)
	if err != nil {
		return nil, err
	}
	t.people = p
	for i, name := range t.names {
		fixed, ok := peopleHeaders[name]
		switch {
		case !ok:
			fixed = t.label(strings.TrimPrefix(name, answerPrefix))
		case strings.HasSuffix(name, "At"):
			fixed += " (" + p.Zone.String() + ")"
		}
		t.header[i] = fixed
	}
	if p.Files == "" {
		return t, nil
	}
	for _, m := range e.Modules() {
		if m.Type == formsvc.FileModule {
			t.files, t.header = append(t.files, m.Name), append(t.header, t.label(m.Name))
		}
	}
	t.header = append(t.header, "Other files")
	t.links = func(ctx context.Context, r *formsvc.Response) ([]string, error) {
		return c.h.fileLinks(ctx, r, t.files, places(r))
	}
	return t, nil
}

// addresses returns where the console or the API has files.
func addresses(p *people.Request) func(*formsvc.Response) filePlace {
	return func(*formsvc.Response) filePlace {
		return func(f *formsvc.File) string { return p.Files + string(f.ID) }
	}
}

// A peopleFormat writes a table for people, with the chosen columns.
type peopleFormat func(c *call, e *formsvc.Export, to *bufio.Writer, p *people.Request, chosen []string) error

// exportForPeople sends the requested responses. Keys without files:read see no files.
func (h *Handler) exportForPeople(c *call, mediaType []string, extension string, write peopleFormat) error {
	p := people.Of(c.r.Context())
	if p == nil {
		p = &people.Request{Zone: time.UTC}
		if c.needs(formsvc.FilesRead) == nil {
			p.Files = h.address(c, files+"/")
		}
	}
	return h.export(c, "column", mediaType, extension, func(_ context.Context, e *formsvc.Export, to *bufio.Writer, chosen []string) error {
		return write(c, e, to, p, chosen)
	})
}

// csvForPeople writes a CSV table. It begins with a byte order mark, without which Excel takes UTF-8 for another encoding.
func csvForPeople(c *call, e *formsvc.Export, to *bufio.Writer, p *people.Request, chosen []string) error {
	t, err := peopleTable(c, e, p, chosen, addresses(p))
	if err != nil {
		return err
	}
	for i, text := range t.header {
		t.header[i] = defused(text)
	}
	_, _ = to.WriteString("\ufeff") // an error remains
	return t.write(c.r.Context(), e, to)
}

// label returns what people call a question.
func (t *table) label(name string) string {
	if m := t.modules[name]; m != nil {
		name = cmp.Or(m.Label, name)
	}
	return name
}

// filesOf yields the files of a response, oldest first, or none if it was deleted meanwhile.
func (h *Handler) filesOf(ctx context.Context, r *formsvc.Response) iter.Seq2[*formsvc.File, error] {
	return formsvc.All(formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}, func(q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
		list, err := h.svc.Files.List(ctx, r.Key(), q)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, formsvc.ErrNotFound) {
			err = nil
		}
		return list, err
	})
}

// fileLinks returns the places of a response's files, by the questions that they are for, and last those of other files.
func (h *Handler) fileLinks(ctx context.Context, r *formsvc.Response, questions []string, place filePlace) ([]string, error) {
	links := make([]string, len(questions)+1)
	for f, err := range h.filesOf(ctx, r) {
		if err != nil {
			return nil, err
		}
		at := slices.Index(questions, f.Module)
		if at < 0 {
			at = len(questions)
		}
		links[at] = strings.TrimPrefix(links[at]+"\n"+place(f), "\n")
	}
	return links, nil
}
