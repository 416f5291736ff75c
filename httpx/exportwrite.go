package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/formsvc/toolkit/formsvc"
)

// WriteCSV writes the responses of an export in the format of GET …/responses.csv: one record each, with a column for
// each module that has answers. It escapes cells that a spreadsheet might run as formulas. Memory is bounded; WriteCSV
// reads all responses twice, first for the columns. After each response it calls progress, unless that is nil, with the
// number of responses written. It fails if there are more modules than a table can have columns.
func WriteCSV(ctx context.Context, w io.Writer, e *formsvc.Export, progress func(responses int)) error {
	names, ok, err := e.Columns(ctx, maxColumns)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("httpx: the responses have answers under more than %d names, or names of more than 1 MiB together, "+
			"which is too much for a table: take NDJSON", maxColumns)
	}
	t := newTable(names)
	return writeExport(ctx, w, e, t.appendHeader(nil), progress, func(b []byte, r *formsvc.Response) ([]byte, error) {
		if err := t.set(r); err != nil {
			return nil, fmt.Errorf("httpx: response %s got an answer under a new name while the columns were looked for: try again", r.ID)
		}
		for i := range t.cells {
			b = t.appendCell(b, i)
		}
		return b, nil
	})
}

// WriteNDJSON writes the responses of an export in the format of GET …/responses.ndjson: one JSON object a line.
// progress is as in [WriteCSV].
func WriteNDJSON(ctx context.Context, w io.Writer, e *formsvc.Export, progress func(responses int)) error {
	return writeExport(ctx, w, e, nil, progress, func(b []byte, r *formsvc.Response) ([]byte, error) {
		return append(r.AppendJSON(b), '\n'), nil
	})
}

// writeExport writes b, and then what add appends for each response.
func writeExport(
	ctx context.Context, w io.Writer, e *formsvc.Export, b []byte, progress func(responses int),
	add func(b []byte, r *formsvc.Response) ([]byte, error),
) error {
	n := 0
	for r, err := range e.All(ctx) {
		if err == nil {
			b, err = add(b, r)
		}
		if err != nil {
			return errors.Join(err, write(w, b)) // the responses written so far may be of use
		}
		if len(b) >= flushAt {
			if err := write(w, b); err != nil {
				return err
			}
			b = b[:0]
		}
		if n++; progress != nil {
			progress(n)
		}
	}
	return write(w, b)
}

func write(w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("httpx: write an export: %w", err)
	}
	return nil
}
