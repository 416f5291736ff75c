package httpx

import (
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// maxColumns bounds the columns for answers of a table.
const maxColumns = 10_000

// answerPrefix is before the name of a module that would be mistaken for a column
// of another kind, or for one with this prefix.
const answerPrefix = "responses."

// fixedColumns are the columns of every table, in the order of [table.set].
func fixedColumns() []string {
	return []string{
		"uuid", "reference", "status", "email", "firstName", "lastName", "createdAt", "updatedAt", "completedAt",
	}
}

// A table makes records of responses (RFC 4180): the fixed columns, then one for
// each name under which there are answers.
type table struct {
	header  []string
	columns map[string]int // of answers
	fixed   int
	cells   []string // of the response that was set, made harmless
}

func newTable(names []string) *table {
	t := &table{header: fixedColumns(), columns: make(map[string]int, len(names))}
	t.fixed = len(t.header)
	taken := make(map[string]bool, t.fixed)
	for _, name := range t.header {
		taken[name] = true
	}
	for _, name := range names {
		t.columns[name] = len(t.header)
		if taken[name] || strings.HasPrefix(name, answerPrefix) {
			name = answerPrefix + name
		}
		t.header = append(t.header, defused(name))
	}
	t.cells = make([]string, len(t.header))
	return t
}

// appendHeader appends the record of the columns' names.
func (t *table) appendHeader(b []byte) []byte {
	for i, name := range t.header {
		b = t.appendField(b, name, i)
	}
	return b
}

// set takes a response, whose cells can be appended then. It fails when there is
// no column for an answer.
func (t *table) set(r *formsvc.Response) error {
	clear(t.cells)
	for i, text := range [...]string{
		string(r.ID), r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName,
		timeCell(r.CreatedAt), timeCell(r.UpdatedAt), timeCell(r.CompletedAt),
	} {
		t.cells[i] = defused(text)
	}
	return r.Answers.Each(func(name string, values []string) error {
		i, ok := t.columns[name]
		if !ok {
			return &problem{
				status: http.StatusServiceUnavailable, code: "unavailable",
				detail: "A response got an answer under a new name while the columns were looked for. Try again.",
			}
		}
		t.cells[i] = answerCell(values)
		return nil
	})
}

// appendCell appends a field of the response that was set.
func (t *table) appendCell(b []byte, i int) []byte { return t.appendField(b, t.cells[i], i) }

// appendField appends the field of a column and what separates it from the next.
func (t *table) appendField(b []byte, text string, column int) []byte {
	b = appendQuoted(b, text)
	if column == len(t.header)-1 {
		return append(b, '\r', '\n')
	}
	return append(b, ',')
}

// timeCell returns a time as it is in JSON, but "" for none.
func timeCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strings.Trim(string(formsvc.AppendTime(nil, t)), `"`)
}

// answerCell puts the values of an answer into one cell. Those of several can't
// be told from one that has a semicolon.
func answerCell(values []string) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return defused(values[0])
	}
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = defused(value)
	}
	return strings.Join(list, "; ")
}

// defused returns the text with an apostrophe before it if a spreadsheet might
// take it for a formula: when the first character that is no space and no
// apostrophe is one of = + - @, the same in full width, or a tab or a line break.
// So what begins with apostrophes and one of these has one that is not its own,
// and nothing else has.
func defused(text string) string {
	rest := strings.TrimLeft(text, " '")
	for _, first := range [...]string{"=", "+", "-", "@", "\t", "\r", "\n", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"} {
		if strings.HasPrefix(rest, first) {
			return "'" + text
		}
	}
	return text
}

// appendQuoted appends a field, between quotes where it would be misread without.
// A semicolon separates fields for some programs.
func appendQuoted(b []byte, text string) []byte {
	if !strings.ContainsAny(text, ",;\"\r\n\t") && !strings.HasPrefix(text, " ") && !strings.HasSuffix(text, " ") {
		return append(b, text...)
	}
	b = append(b, '"')
	for {
		before, after, found := strings.Cut(text, `"`)
		b = append(b, before...)
		if !found {
			return append(b, '"')
		}
		b = append(b, '"', '"')
		text = after
	}
}
