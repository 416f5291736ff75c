package httpx

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// maxColumns is the limit of columns for answers.
const maxColumns = 10_000

// answerPrefix is put before a module name that could be mistaken for a fixed column, or that begins with this prefix.
const answerPrefix = "responses."

// fixedColumns returns the columns of every table, in the order of [table.set].
func fixedColumns() []string {
	return []string{
		"uuid", "reference", "status", "email", "firstName", "lastName", "createdAt", "updatedAt", "completedAt",
	}
}

// A table writes responses as CSV records (RFC 4180).
type table struct {
	names   []string // of the columns, as chosen
	header  []string
	fixed   []int          // the places of the fixed columns; -1: not in the table
	columns map[string]int // of modules, by name
	modules map[string]*formsvc.Module
	chosen  bool                                                       // whether answers may have no column
	cells   []string                                                   // of the current response, with formulas escaped
	people  *people.Request                                            // nil: a table for programs
	files   []string                                                   // questions whose files have a column
	links   func(context.Context, *formsvc.Response) ([]string, error) // returns the places of files; nil: none
}

// chosenTable returns a table with these columns: fixed ones, and modules with or without [answerPrefix].
func chosenTable(names []string) *table {
	t := &table{names: names, columns: make(map[string]int, len(names)), cells: make([]string, len(names))}
	fixed := fixedColumns()
	for _, name := range fixed {
		t.fixed = append(t.fixed, slices.Index(names, name))
	}
	for i, name := range names {
		if !slices.Contains(fixed, name) {
			module := strings.TrimPrefix(name, answerPrefix)
			t.columns[module] = i
			if name = module; slices.Contains(fixed, module) || strings.HasPrefix(module, answerPrefix) {
				name = answerPrefix + module
			}
		}
		t.header = append(t.header, defused(name))
	}
	return t
}

// set fills the cells with a response. It fails if an answer or metadata has no column.
func (t *table) set(r *formsvc.Response) error {
	clear(t.cells)
	for i, text := range [...]string{
		string(r.ID), r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName,
		t.time(r.CreatedAt), t.time(r.UpdatedAt), t.time(r.CompletedAt),
	} {
		if at := t.fixed[i]; at >= 0 {
			t.cells[at] = defused(text)
		}
	}
	return r.AllValues(func(name string, values []string) error {
		i, m, err := t.column(name)
		if i < 0 {
			return err
		}
		if t.people != nil {
			values = slices.Clone(values)
			for i, value := range values {
				values[i] = m.Shown(value)
			}
		}
		t.cells[i] = strings.TrimPrefix(t.cells[i]+"; "+answerCell(m, values), "; ") // a module may be named as metadata is
		return nil
	})
}

// column returns the place of an answer, or -1 if it has none.
func (t *table) column(name string) (int, *formsvc.Module, error) {
	if i, ok := t.columns[name]; ok {
		return i, t.modules[name], nil
	}
	if t.chosen {
		return -1, nil, nil
	}
	return -1, nil, wire.Refuse(http.StatusServiceUnavailable, "unavailable", "A response got an answer with a new name during the export. Retry.")
}

// appendRecord appends a line of fields.
func appendRecord(b []byte, fields []string) []byte {
	for i, text := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, text)
	}
	return append(b, '\r', '\n')
}

// time returns a time in the format of JSON, or as people write it, or "" for the zero time.
func (t *table) time(at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case t.people != nil:
		return at.In(t.people.Zone).Format("2006-01-02 15:04")
	}
	return at.UTC().Format(wire.TimeLayout)
}

// answerCell joins the values of an answer in one cell. Numbers of number, rating and scale questions stay as they are, since none of them is a formula.
func answerCell(m *formsvc.Module, values []string) string {
	return m.Join(values, func(value string) string {
		if m != nil && m.Type.Numeric() && formsvc.ValidNumber(value) {
			return value
		}
		return defused(value)
	})
}

// cellBreaks separate cells for programs that don't read commas, or that split a text when it is pasted.
const cellBreaks = ";\t\r\n"

// defused returns the text with apostrophes where a spreadsheet might run a part of it as a formula: before the text and
// after each ; tab, CR and LF in it, if the first character there, after white space, quotes and apostrophes, is one of
// = + - @ or their full-width forms. A text whose first character is a tab or a line break gets one too. So each place that
// has an apostrophe and such a character has exactly one added apostrophe, and no other place has.
func defused(text string) string {
	rest := unpadded(text)
	if rest != "" && strings.Contains(cellBreaks[1:], rest[:1]) || startsFormula(rest) {
		text = "'" + text
	}
	at := strings.IndexAny(text, cellBreaks)
	if at < 0 {
		return text
	}
	var b strings.Builder
	for ; at >= 0; at = strings.IndexAny(text, cellBreaks) {
		b.WriteString(text[:at+1])
		text = text[at+1:]
		if startsFormula(unpadded(text)) {
			b.WriteByte('\'')
		}
	}
	b.WriteString(text)
	return b.String()
}

// unpadded returns the text without what a spreadsheet may skip at its beginning.
func unpadded(text string) string {
	return strings.TrimLeftFunc(text, func(r rune) bool {
		return r == '\'' || r == '"' || unicode.IsSpace(r) && !strings.ContainsRune(cellBreaks, r)
	})
}

func startsFormula(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("=+-@\uFF1D\uFF0B\uFF0D\uFF20", first)
}

// appendQuoted appends a field, in quotes if it would be misread without. Some programs take a semicolon for the
// separator.
func appendQuoted(b []byte, text string) []byte {
	if !strings.ContainsAny(text, ",;\"\r\n\t") && !strings.HasPrefix(text, " ") && !strings.HasSuffix(text, " ") {
		return append(b, text...)
	}
	b = append(append(b, '"'), strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}

// WriteCSV writes the responses of an export in the format of GET …/responses.csv: one record each, with a column for
// each module that has answers. It escapes cells that a spreadsheet might run as formulas. Memory is bounded; WriteCSV
// reads all responses twice, first for the columns. If they have answers under more than 10,000 names, it fails before it
// writes, with an error of no exported type.
func WriteCSV(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, writeCSV)
}

// WriteNDJSON writes the responses of an export in the format of GET …/responses.ndjson: one JSON object a line.
func WriteNDJSON(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, writeNDJSON)
}

func writeExport(ctx context.Context, w io.Writer, e *formsvc.Export, format exportFormat) error {
	to := bufio.NewWriterSize(w, flushAt)
	err := format(ctx, e, to, nil)
	return cmp.Or(err, to.Flush()) // the responses written so far may be of use
}

// An exportFormat writes responses. Tables have the chosen columns, or all if there are none.
type exportFormat func(ctx context.Context, e *formsvc.Export, to *bufio.Writer, chosen []string) error

func writeNDJSON(ctx context.Context, e *formsvc.Export, to *bufio.Writer, _ []string) error {
	var line []byte
	for r, err := range e.All(ctx) {
		if err != nil {
			return err
		}
		line = append(r.AppendJSON(line[:0]), '\n')
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV writes a table with the chosen columns, or with all of them if there are none.
func writeCSV(ctx context.Context, e *formsvc.Export, to *bufio.Writer, chosen []string) error {
	t, err := tableOf(ctx, e, chosen, fixedColumns(), nil)
	if err != nil {
		return err
	}
	return t.write(ctx, e, to)
}

// tableOf returns a table with the chosen columns. If there are none, it has all answers between those of before and after, or there is a
// problem if they are too many.
func tableOf(ctx context.Context, e *formsvc.Export, chosen, before, after []string) (*table, error) {
	names := chosen
	if len(chosen) == 0 {
		answers, ok, err := e.Columns(ctx, maxColumns)
		if err == nil && !ok {
			err = wire.Refuse(http.StatusUnprocessableEntity, "too_many_columns",
				"The responses have answers under more than "+strconv.Itoa(maxColumns)+
					" names, or names of more than 1 MiB together, which is too much for a table. Ask for responses.ndjson.")
		}
		if err != nil {
			return nil, err
		}
		for i := range answers {
			answers[i] = answerPrefix + answers[i]
		}
		names = slices.Concat(before, answers, after)
	}
	t := chosenTable(names)
	t.chosen, t.modules = len(chosen) > 0, make(map[string]*formsvc.Module)
	for _, m := range e.Modules() {
		t.modules[m.Name] = &m
	}
	return t, nil
}

// write writes the names of the columns and all responses.
func (t *table) write(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
	record := appendRecord(nil, t.header)
	_, _ = to.Write(record) // an error remains
	return t.each(ctx, e, t.set, func(links []string) error {
		record = appendRecord(record[:0], append(t.cells, links...))
		_, err := to.Write(record)
		return err
	})
}

// each calls row for each response, after set, with the places of its files.
func (t *table) each(ctx context.Context, e *formsvc.Export, set func(*formsvc.Response) error, row func(links []string) error) error {
	for r, err := range e.All(ctx) {
		if err == nil {
			err = set(r)
		}
		var links []string
		if err == nil && t.links != nil {
			links, err = t.links(ctx, r)
		}
		if err == nil {
			err = row(links)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
