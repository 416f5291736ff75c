package httpx

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// WriteCSV writes the responses of an export in the format of GET …/responses.csv: one record each, with a column for
// each module that has answers. It escapes cells that a spreadsheet might run as formulas. Memory is bounded; WriteCSV
// reads all responses twice, first for the columns. If they have answers under more than 10,000 names, it fails before it
// writes, with an error of no exported type.
func WriteCSV(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, csvOf(nil))
}

// WriteNDJSON writes the responses of an export in the format of GET …/responses.ndjson: one JSON object a line.
func WriteNDJSON(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, writeNDJSON)
}

func writeExport(ctx context.Context, w io.Writer, e *formsvc.Export, format exportFormat) error {
	to := bufio.NewWriterSize(w, flushAt)
	err := format(ctx, e, to)
	return cmp.Or(err, to.Flush()) // the responses written so far may be of use
}

// An exportFormat writes responses.
type exportFormat func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error

func writeNDJSON(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
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

// csvOf returns the format of a table with the chosen columns, or with all of them if there are none.
func csvOf(chosen []string) exportFormat {
	return func(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
		t := chosenTable(chosen)
		if len(chosen) == 0 {
			names, err := columnsOf(ctx, e)
			if err != nil {
				return err
			}
			t = newTable(names)
		}
		t.modules = modulesByName(e.Modules())
		return t.write(ctx, e, to)
	}
}

// columnsOf returns the names of all answers, or a problem if they are too many for a table.
func columnsOf(ctx context.Context, e *formsvc.Export) ([]string, error) {
	names, ok, err := e.Columns(ctx, maxColumns)
	if err == nil && !ok {
		err = wire.Refuse(http.StatusUnprocessableEntity, "too_many_columns",
			"The responses have answers under more than "+strconv.Itoa(maxColumns)+
				" names, or names of more than 1 MiB together, which is too much for a table. Ask for responses.ndjson.")
	}
	return names, err
}

// write writes the names of the columns and all responses.
func (t *table) write(ctx context.Context, e *formsvc.Export, to *bufio.Writer) error {
	record := appendRecord(nil, t.header)
	_, _ = to.Write(record) // an error remains
	for r, err := range e.All(ctx) {
		if err == nil {
			err = t.set(r)
		}
		cells := t.cells
		if err == nil && t.links != nil {
			cells, err = t.links(ctx, r)
			cells = slices.Concat(t.cells, cells)
		}
		if err == nil {
			record = appendRecord(record[:0], cells)
			_, err = to.Write(record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
