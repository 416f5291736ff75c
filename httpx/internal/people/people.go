// Package people carries what the console asks the API for a visitor, in the context of the request.
package people

import (
	"context"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A Request says whom a request of the console acts for, and how it changes an export.
type Request struct {
	Who       *formsvc.Principal
	NotStatus string         // leaves out the responses with this status; "" for none
	Zone      *time.Location // of searched and written times
	// Labels writes a table for people: labels as headers, words for values, links to files that begin with Files.
	Labels bool
	Files  string
	Name   string // of the downloaded file, without its extension
	Inline bool   // whether the page shows the file, if it is a PDF
}

type key struct{}

// With returns a context with r.
func With(ctx context.Context, r *Request) context.Context { return context.WithValue(ctx, key{}, r) }

// Of returns the Request of the context, or nil.
func Of(ctx context.Context) *Request {
	r, _ := ctx.Value(key{}).(*Request)
	return r
}
