package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"testing"
	"time"
)

// requestTimeout is longer than any fault that a request should survive, and short enough to continue after others.
const requestTimeout = 20 * time.Second

// A client calls the service over HTTP with one key. It shares no code with the service, and is safe for concurrent use.
type client struct {
	key     string
	http    *http.Client
	discard bool // keeps no response
}

func newClient(t testing.TB, key string) *client {
	c := &client{key: key, http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// An answer is the response, as far as it arrived. One with a status and an error broke off.
type answer struct {
	status int
	uuid   string // of the created record, from Location or the body
	body   []byte
}

// do makes a request and reads the whole response. It never repeats one by itself: the ledger records every request.
func (c *client) do(ctx context.Context, method, address string, body []byte, header map[string]string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.GetBody = nil // without it, net/http can't silently resend a body with an Idempotency-Key
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.status = resp.StatusCode; c.discard {
		_, err = io.Copy(io.Discard, resp.Body)
		return a, err
	}
	if a.body, err = io.ReadAll(resp.Body); a.status == http.StatusCreated {
		var created struct {
			UUID string `json:"uuid"`
		}
		_ = json.Unmarshal(a.body, &created) // a body that broke off says nothing
		if a.uuid = created.UUID; resp.Header.Get("Location") != "" {
			a.uuid = path.Base(resp.Header.Get("Location"))
		}
	}
	return a, err
}

// get reads JSON, which must exist.
func (c *client) get(ctx context.Context, address string, v any) error {
	a, err := c.do(ctx, http.MethodGet, address, nil, nil)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d", a.status)
	}
	if err == nil {
		err = json.Unmarshal(a.body, v)
	}
	if err != nil {
		return fmt.Errorf("GET %s: %w: %.200s", address, err, a.body)
	}
	return nil
}

// made creates something and returns its UUID.
func (c *client) made(t testing.TB, address, body string) string {
	t.Helper()
	a, err := c.do(t.Context(), http.MethodPost, address, []byte(body), nil)
	if err != nil || a.status != http.StatusCreated {
		t.Fatalf("POST %s: %v, %d %.200s", address, err, a.status, a.body)
	}
	return a.uuid
}

// list reads a list to its end, page by page.
func list[T any](ctx context.Context, c *client, address string) (all []T, err error) {
	for q := (url.Values{"limit": {"1000"}}); ; {
		var page struct {
			Items      []T    `json:"items"`
			Total      *int   `json:"total"`
			NextCursor string `json:"nextCursor"`
			More       *bool  `json:"more"` // of the events only
		}
		if err := c.get(ctx, address+"?"+q.Encode(), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		q.Set("cursor", page.NextCursor)
		switch {
		case page.More != nil && *page.More, page.More == nil && page.NextCursor != "":
		case page.Total != nil && *page.Total != len(all):
			return nil, fmt.Errorf("GET %s: the total is %d, the pages list %d", address, *page.Total, len(all))
		default:
			return all, nil
		}
	}
}
