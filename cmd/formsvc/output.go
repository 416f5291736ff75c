package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// output is the --json flag of commands that print records.
type output struct {
	JSON bool `name:"json" help:"Print JSON, one record a line."`
}

// records prints each record as JSON, or as a table with the rows that row returns.
func records[T any](o output, w io.Writer, header string, list []T, row func(T) string) error {
	if o.JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, r := range list {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, header)
	for _, r := range list {
		_, _ = fmt.Fprintln(t, row(r))
	}
	return t.Flush()
}

// stamp is a time in a record: null if it is zero.
type stamp struct{ time.Time }

// MarshalJSON formats the time like the API.
func (s stamp) MarshalJSON() ([]byte, error) { return formsvc.AppendTime(nil, s.Time), nil }

// String formats the time for a table.
func (s stamp) String() string {
	if s.IsZero() {
		return "-"
	}
	return s.UTC().Format(time.RFC3339)
}

// orDash returns "-" for an empty text, for a table.
func orDash[S ~string](s S) string {
	if s == "" {
		return "-"
	}
	return string(s)
}

// orNull returns a pointer to v, or nil if v is the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func mapped[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

func joined[S ~string](list []S) string {
	return strings.Join(mapped(list, func(s S) string { return string(s) }), ",")
}

// parseID parses the UUID of a record.
func parseID(s string) (formsvc.ID, error) {
	id, ok := formsvc.ParseID(s)
	if !ok {
		return "", usageError{fmt.Errorf("%q is not a UUID", s)}
	}
	return id, nil
}

// milliseconds returns a duration in the API's unit.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
