// Package api calls the service over HTTP like an independent client: it shares no code with it.
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

// timeout limits one request: it is longer than any fault that a request should survive, and short enough to continue
// after others.
const timeout = 20 * time.Second

// A Client makes requests with one key. It is safe for concurrent use.
type Client struct {
	key  string
	http *http.Client
}

// New returns a client that keeps up to 64 connections to each address. It never repeats a request by itself: the ledger
// records every request.
func New(key string) *Client {
	return &Client{key: key, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second},
		Timeout:   timeout,
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Request is a request to make. Body may be nil.
type Request struct {
	Method, URL string
	Header      map[string]string
	Body        []byte
}

// An Answer is the response, as far as it arrived. An answer with a status and an error broke off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes a request and reads the whole response.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	a.Body, err = io.ReadAll(resp.Body)
	return a, err
}

// Discard makes a request and reads the response, but keeps nothing of it. It costs the client as little as it can.
func (c *Client) Discard(ctx context.Context, r Request) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	// Without it, net/http can't silently resend a body on another connection, as it does with an Idempotency-Key.
	req.GetBody = nil
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	return c.http.Do(req)
}

// Get reads JSON, which must exist.
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

// A page has the fields of all lists.
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

// Created returns the UUID of the created record, from Location or otherwise from the body.
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
