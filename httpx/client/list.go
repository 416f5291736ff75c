package client

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Total int64  `json:"total"`      // records on all pages
	Next  string `json:"nextCursor"` // the Cursor of the next page; "" on the last
}

// A PageQuery chooses a part of a list. Lists are in the order of creation.
type PageQuery struct {
	Limit     int    // 1 to 1000; the service may return fewer. Defaults to 50, and to 200 in All
	Offset    int    // records to skip; the cost grows with it
	Cursor    string // continue here, at a constant cost; overrides Offset
	Ascending bool   // oldest first; newest first otherwise
}

func (q *PageQuery) values() url.Values {
	v := url.Values{}
	setInt(v, "limit", q.Limit)
	setInt(v, "offset", q.Offset)
	set(v, "cursor", q.Cursor)
	if q.Ascending {
		v.Set("order", "asc")
	}
	return v
}

func set[T ~string](v url.Values, name string, values ...T) {
	for _, value := range values {
		if value != "" {
			v.Add(name, string(value))
		}
	}
}

func setInt(v url.Values, name string, n int) {
	if n != 0 {
		v.Set(name, strconv.Itoa(n))
	}
}

func setTime(v url.Values, name string, t time.Time) {
	if !t.IsZero() {
		v.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

// get reads a record or a page.
func get[T any](ctx context.Context, c *Client, path string, query url.Values, opts []CallOption) (T, error) {
	k := c.newCall(http.MethodGet, path, nil, opts)
	k.query = query
	return send[T](ctx, c, k)
}

// all reads page after page. It ends with the first error.
func all[T any](ctx context.Context, c *Client, path string, query url.Values, opts []CallOption) iter.Seq2[T, error] {
	query.Set("limit", cmp.Or(query.Get("limit"), "200"))
	return func(yield func(T, error) bool) {
		for {
			page, err := get[Page[T]](ctx, c, path, query, opts)
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
			}
			if page.Next == "" {
				return
			}
			query.Del("offset")
			query.Set("cursor", page.Next)
		}
	}
}

// segment is an identifier in a path. One that is none stays a single segment, which the service doesn't find.
func segment(id string) string { return "/" + url.PathEscape(id) }

// or returns q, or the zero query for nil.
func or[T any](q *T) *T {
	if q == nil {
		return new(T)
	}
	return q
}
