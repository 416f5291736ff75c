package client

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// An ExportFormat is that of an export.
type ExportFormat string

// The formats of exports.
const (
	CSV    ExportFormat = "csv"    // a table (RFC 4180), with an apostrophe before text that spreadsheets might take for a formula
	NDJSON ExportFormat = "ndjson" // a line with a JSON object for each response
	XLSX   ExportFormat = "xlsx"   // a workbook for people
	ZIP    ExportFormat = "zip"    // a workbook and all files
)

// ExportQuery chooses what is exported.
type ExportQuery struct {
	ResponseFilter

	Search    string                          // the reference, name, address or an answer contains this, ignoring case and accents
	Answers   map[string]formsvc.AnswerFilter // conditions on answers, by the name of the question
	Ascending bool                            // oldest first; newest first otherwise
	Columns   []string                        // of tables, at most 100. Defaults to all
}

// Export returns all responses that q chooses. Reading text continues after broken connections; a table must have
// the column uuid first for that. XLSX and ZIP can't continue, so reading them fails if the connection breaks. ctx ends the reading, too. The caller must close the result.
func (s Responses) Export(ctx context.Context, campaign string, format ExportFormat, q *ExportQuery, opts ...CallOption) (io.ReadCloser, error) {
	k := s.c.newCall(http.MethodGet, responses(campaign)+"."+url.PathEscape(string(format)), nil, opts)
	page := PageQuery{Ascending: or(q).Ascending}
	k.query = or(q).addTo(page.values())
	set(k.query, "search", or(q).Search)
	for name, f := range or(q).Answers {
		set(k.query, "answer["+name+"]", f.Any...)
		set(k.query, "answerFrom["+name+"]", f.From)
		set(k.query, "answerTo["+name+"]", f.To)
	}
	set(k.query, "column", or(q).Columns...)
	got, err := s.c.newStream(ctx, k)
	if err != nil {
		return nil, err
	}
	if format == XLSX || format == ZIP {
		return got.body, nil
	}
	return &export{stream: got, table: format == CSV}, nil
}

// An export hands out whole records only, so that it can continue after a broken connection.
type export struct {
	*stream

	table  bool
	buffer []byte // records, of which the last may not be whole
	whole  int    // how many bytes of buffer are whole records
	seen   int    // how many have been searched for the end of a record
	quoted bool   // whether the next byte is between quotes
	header []byte // the first record of a table
	repeat bool   // whether the header comes again
	err    error
}

// Read implements io.Reader.
func (e *export) Read(p []byte) (int, error) {
	for e.whole == 0 && e.err == nil {
		e.err = e.fill()
	}
	n := copy(p, e.buffer[:e.whole])
	e.buffer, e.whole, e.seen = e.buffer[n:], e.whole-n, e.seen-n
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, e.err
}

// fill reads on.
func (e *export) fill() error {
	e.buffer = slices.Grow(e.buffer, 32<<10)
	n, err := e.body.Read(e.buffer[len(e.buffer):cap(e.buffer)])
	e.buffer = e.buffer[:len(e.buffer)+n]
	for start := e.whole; e.seen < len(e.buffer); e.seen++ {
		switch {
		case e.table && e.buffer[e.seen] == '"':
			e.quoted = !e.quoted
		case e.buffer[e.seen] == '\n' && !e.quoted:
			if failed := e.record(e.buffer[start : e.seen+1]); failed != nil {
				return failed
			}
			start = e.whole
		}
	}
	if errors.Is(err, io.EOF) && len(e.buffer) > e.whole {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return e.resume(err)
	}
	return err
}

// record takes over a record: whole grows by it, unless it is the header again.
func (e *export) record(text []byte) error {
	switch {
	case e.repeat && !bytes.Equal(text, e.header):
		return errors.New("formsvc client: export: the columns changed while the connection was broken")
	case e.repeat:
		e.repeat = false
		e.buffer = slices.Delete(e.buffer, e.whole, e.whole+len(text))
		e.seen = e.whole - 1
		return nil
	case e.table && e.header == nil:
		e.header = bytes.Clone(text)
	case e.table:
		id, _, _ := bytes.Cut(text, []byte(","))
		e.call.query["cursor"] = []string{string(id)}
	default:
		var row struct{ UUID string }
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		e.call.query["cursor"] = []string{row.UUID}
	}
	e.whole, e.broken = e.whole+len(text), 0
	return nil
}

// resume continues after the connection broke with err.
func (e *export) resume(err error) error {
	if e.header != nil {
		columns, failed := csv.NewReader(bytes.NewReader(e.header)).Read()
		if failed != nil || columns[0] != "uuid" || len(columns) > 100 {
			return fmt.Errorf("formsvc client: export: only tables of up to 100 columns, with uuid first, can be continued: %w", err)
		}
		e.call.query["column"] = columns // those of what is left may be fewer
	}
	e.buffer, e.seen, e.quoted, e.repeat = e.buffer[:e.whole], e.whole, false, e.header != nil
	return e.again(err)
}
