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
// reads all responses twice, first for the columns. It fails if there are more modules than a table can have columns.
func WriteCSV(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, appendCSV)
}

// WriteNDJSON writes the responses of an export in the format of GET …/responses.ndjson: one JSON object a line.
func WriteNDJSON(ctx context.Context, w io.Writer, e *formsvc.Export) error {
	return writeExport(ctx, w, e, appendNDJSON)
}

func writeExport(ctx context.Context, w io.Writer, e *formsvc.Export, format exportFormat) error {
	var out []byte
	write := func() error {
		n := len(out)
		if out = out[:0]; n == 0 {
			return nil
		}
		if _, err := w.Write(out[:n]); err != nil {
			return fmt.Errorf("httpx: write an export: %w", err)
		}
		return nil
	}
	err := format(ctx, e, &out, func() error {
		if len(out) < flushAt {
			return nil
		}
		return write()
	})
	return errors.Join(err, write()) // the responses written so far may be of use
}

// An exportFormat appends the responses to *out, and calls flush after every part of them. flush may empty *out.
type exportFormat func(ctx context.Context, e *formsvc.Export, out *[]byte, flush func() error) error

func appendNDJSON(ctx context.Context, e *formsvc.Export, out *[]byte, flush func() error) error {
	for r, err := range e.All(ctx) {
		if err != nil {
			return err
		}
		*out = append(r.AppendJSON(*out), '\n')
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

func appendCSV(ctx context.Context, e *formsvc.Export, out *[]byte, flush func() error) error {
	names, ok, err := e.Columns(ctx, maxColumns)
	if err != nil {
		return err
	}
	if !ok {
		return tooManyColumns()
	}
	t := newTable(names)
	*out = t.appendHeader(*out)
	for r, err := range e.All(ctx) {
		if err != nil {
			return err
		}
		if err := t.set(r); err != nil {
			return err
		}
		for i := range t.cells {
			*out = t.appendCell(*out, i)
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
