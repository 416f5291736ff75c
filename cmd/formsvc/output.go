package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// output is the --json flag of commands that print records.
type output struct {
	JSON bool `name:"json" help:"Print JSON, one record a line."`
}

// A table prints records of one kind.
type table[R any] struct {
	header string         // the names of the columns, separated by tabs
	row    func(R) string // see cells
}

// print prints each record as JSON, or as a table. It passes on an error, and then prints nothing.
func (t table[R]) print(o output, std streams, err error, list ...R) error {
	if err != nil || o.JSON {
		return o.printJSON(std, err, anys(list)...)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, t.header)
	for _, r := range list {
		_, _ = fmt.Fprintln(w, t.row(r))
	}
	return w.Flush()
}

// printJSON prints each record as JSON, in the API's form if it has one, unless there is an error, which it passes on.
func (output) printJSON(std streams, err error, list ...any) error {
	enc := json.NewEncoder(std.out)
	enc.SetEscapeHTML(false)
	for i := 0; i < len(list) && err == nil; i++ {
		record := list[i]
		if r, ok := record.(interface{ AppendJSON(b []byte) []byte }); ok {
			record = json.RawMessage(r.AppendJSON(nil))
		}
		err = enc.Encode(record)
	}
	return err
}

// cells returns a row of a table. Lists are joined with commas, and "-" stands for nothing.
func cells(list ...any) string {
	return strings.Join(mapped(list, plain), "\t")
}

func plain(value any) string {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "-"
	case v.Kind() == reflect.Pointer:
		return plain(v.Elem().Interface())
	case v.Kind() == reflect.Slice:
		value = strings.Trim(strings.ReplaceAll(fmt.Sprint(value), " ", ","), "[]")
	}
	if text := fmt.Sprint(value); text != "" {
		return text
	}
	return "-"
}

// stamp is a time in a record: null if it is zero.
type stamp struct{ time.Time }

// MarshalJSON formats the time like the API.
func (s stamp) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	return s.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

// String formats the time for a table.
func (s stamp) String() string {
	if s.IsZero() {
		return "-"
	}
	return s.UTC().Format(time.RFC3339)
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

func anys[T any](list []T) []any { return mapped(list, func(v T) any { return &v }) }

// inBytes formats a number of bytes for people.
func inBytes(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// progress returns a function that prints a line on how far a long command is, at most every five seconds. It is for one
// goroutine.
func (s streams) progress() func(format string, args ...any) {
	next := time.Now().Add(progressEvery)
	return func(format string, args ...any) {
		if time.Now().After(next) {
			next = time.Now().Add(progressEvery)
			s.note(format, args...)
		}
	}
}
