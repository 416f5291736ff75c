// Package people carries how the console asks the API for an export, in the context of the request.
package people

import (
	"context"
	"time"
)

// An Export changes an export.
type Export struct {
	NotStatus string         // leaves out the responses with this status; "" for none
	Zone      *time.Location // of searched and written times
	// Labels writes a table for people: labels as headers, words for values, links to files that begin with Files.
	Labels bool
	Files  string
	Name   string // of the downloaded file, without its extension
}

type key struct{}

// With returns a context with e.
func With(ctx context.Context, e *Export) context.Context { return context.WithValue(ctx, key{}, e) }

// Of returns the Export of the context, or nil.
func Of(ctx context.Context) *Export {
	e, _ := ctx.Value(key{}).(*Export)
	return e
}
