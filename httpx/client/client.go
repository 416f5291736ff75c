// Package client calls the REST API of a service (formsvc) from another Go program. It uses the standard library and
// the plain types of packages formsvc and webhook.
//
//	api, err := client.New("https://forms.example.com", key, nil)
//	// handle err
//	response, err := api.Responses.Create(ctx, campaign, client.ResponseInput{
//		User:    formsvc.User{Email: "ada@example.com"},
//		Answers: formsvc.NewAnswers(formsvc.Answer{Name: "amount", Value: []string{"100"}}),
//	})
//
// # Repetition
//
// A call is repeated after a broken connection and after the statuses 408, 429, 502, 503 and 504, until its context ends
// or its attempts are used up ([Options], [Attempts]). Pauses grow to ten seconds, with jitter, and are at least the
// Retry-After of the service. If the deadline of the context comes before the next attempt, the call fails at once.
// Each POST has a random Idempotency-Key, so it takes effect once, however often it is repeated.
//
// After a lost reply, the 412 of a change with [IfMatch] may mean that the change was made: read the record again.
//
// # Errors
//
// A refusal of the service is a *[Problem]. errors.Is finds [formsvc.ErrNotFound] and the like in it.
package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A Client calls one service with one key. Its fields group the operations, as the fields of [formsvc.Service] do. It is
// safe for concurrent use and needs no Close.
type Client struct {
	Campaigns  Campaigns
	Responses  Responses
	Files      Files
	Comments   Comments
	Signatures Signatures
	Webhooks   Webhooks
	Deliveries Deliveries
	Events     Events

	base, key string
	opts      Options
}

// Options changes how a Client works.
type Options struct {
	// HTTP sends the requests. Its Timeout would also end long downloads. Defaults to a client with
	// [http.DefaultTransport].
	HTTP *http.Client
	// Timeout ends an attempt in which no byte moved for this long. Defaults to a minute, as the service itself gives a
	// call 30 seconds.
	Timeout time.Duration
	// Attempts limits the attempts of each call. Defaults to no limit: the context decides.
	Attempts int
}

// New returns a client of the service at baseURL, such as https://example.com or https://example.com/forms, with an API
// key. nil opts mean the defaults. It fails if the URL isn't one of http or https, or if no header can have the key. It
// sends nothing.
func New(baseURL, key string, opts *Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("formsvc client: the base URL must be an absolute http or https URL without query and fragment")
	case strings.ContainsFunc(key, unprintable):
		return nil, errors.New("formsvc client: the key has characters that no key has")
	}
	if opts == nil {
		opts = new(Options)
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), key: key, opts: *opts}
	c.opts.HTTP = cmp.Or(c.opts.HTTP, &http.Client{})
	c.opts.Timeout = cmp.Or(c.opts.Timeout, time.Minute)
	c.Campaigns, c.Responses, c.Files, c.Comments = Campaigns{c}, Responses{c}, Files{c}, Comments{c}
	c.Signatures, c.Webhooks, c.Deliveries, c.Events = Signatures{c}, Webhooks{c}, Deliveries{c}, Events{c}
	return c, nil
}

// unprintable reports whether a character can't be in a header.
func unprintable(r rune) bool { return r < ' ' || r > '~' }

// Me is what a key is and may do.
type Me struct {
	Account struct{ UUID, Name string } `json:"account"`
	// Key is nil where the service's program authenticates in its own way.
	Key         *struct{ UUID, Name string } `json:"key"`
	Permissions []formsvc.Permission         `json:"permissions"`
	// Quota is how many requests are left; nil: there is no limit.
	Quota *struct{ Limit, Remaining, ResetSeconds, WindowSeconds int } `json:"quota"`
}

// Me returns the account and the permissions of the key.
func (c *Client) Me(ctx context.Context, opts ...CallOption) (Me, error) {
	return get[Me](ctx, c, "/v1/me", nil, opts)
}

// Ready fails unless the service works. degraded names parts that don't, such as files. It makes one attempt.
func (c *Client) Ready(ctx context.Context) (degraded []string, err error) {
	got, err := get[struct{ Components []string }](ctx, c, "/readyz", nil, []CallOption{Attempts(1)})
	return got.Components, err
}

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
