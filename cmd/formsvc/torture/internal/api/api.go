// Package api calls the service over HTTP as a stranger would: it shares no code
// with it.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"
)

// timeout bounds one request: longer than any fault that the service should
// outlive within a request, short enough to go on after the others.
const timeout = 20 * time.Second

// A Client makes requests with one key. It is safe for concurrent use.
type Client struct {
	key  string
	http *http.Client
}

// New returns a client that keeps up to 64 connections to each address. It never
// sends a request twice by itself: every request is one of the ledger.
func New(key string) *Client {
	return &Client{key: key, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second},
		Timeout:   timeout,
	}}
}

// Close closes the connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Request is what to ask. Body may be nil.
type Request struct {
	Method, URL string
	Header      map[string]string
	Body        []byte
}

// An Answer is what came back, as far as it did. An answer with a status and an
// error broke off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes a request and reads the answer to its end.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return Answer{}, err
	}
	// Without it net/http can't send a body again on another connection unseen, as it
	// does with an Idempotency-Key.
	req.GetBody = nil
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	a.Body, err = io.ReadAll(resp.Body)
	return a, err
}

// Get reads JSON that must be there.
func (c *Client) Get(ctx context.Context, address string, v any) error {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, URL: address})
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("GET %s: status %d: %.200s", address, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		return fmt.Errorf("GET %s: %w: %.200s", address, err, a.Body)
	}
	return nil
}

// A page is what all lists have in common.
type page[T any] struct {
	Items      []T    `json:"items"`
	Total      *int   `json:"total"`
	NextCursor string `json:"nextCursor"`
	More       *bool  `json:"more"` // of the events only
}

// List reads a list to its end, page by page.
func List[T any](ctx context.Context, c *Client, address string) (all []T, err error) {
	cursor := ""
	for {
		q := url.Values{"limit": {"1000"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var p page[T]
		if err := c.Get(ctx, address+"?"+q.Encode(), &p); err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		more := p.NextCursor != ""
		if p.More != nil {
			more = *p.More
		}
		if !more {
			if p.Total != nil && *p.Total != len(all) {
				return nil, fmt.Errorf("GET %s: the total is %d, the pages list %d", address, *p.Total, len(all))
			}
			return all, nil
		}
		cursor = p.NextCursor
	}
}

// Created returns the UUID of what was made: the last part of Location, or what the
// body says where there is none.
func (a *Answer) Created() string {
	if location := a.Header.Get("Location"); location != "" {
		return path.Base(location)
	}
	var v struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(a.Body, &v) // a body that broke off says nothing
	return v.UUID
}
