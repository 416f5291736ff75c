package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// A client calls the API with one key.
type client struct {
	url, key string
	http     *http.Client
}

// newClient returns a client with its own connections.
func newClient(t testing.TB, url, key string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16, ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{url: url, key: key, http: &http.Client{Transport: transport}}
}

// An answer is a complete response of the API.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do makes a request and reads the whole response. A body that is not nil is sent as JSON.
func (c *client) do(ctx context.Context, method, path string, body any) (answer, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, content)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.answered(req)
}

// answered makes a request and reads the whole response. If the response breaks off, it returns the part that arrived.
func (c *client) answered(req *http.Request) (answer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(resp.Body)
	return a, err
}

// want makes a request that must return the status, and decodes the response into v unless that is nil.
func (c *client) want(t testing.TB, status int, method, path string, body, v any) answer {
	t.Helper()
	a, err := c.do(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.status != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", method, path, a.status, status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal(a.body, v); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, path, err, a.body)
		}
	}
	return a
}

// campaign creates a campaign and returns its UUID.
func (c *client) campaign(t testing.TB, title string) string {
	t.Helper()
	var v campaign
	c.want(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", map[string]string{"title": title}, &v)
	return v.UUID
}

// submit creates a response with the marker in its answers and returns it.
func (c *client) submit(t testing.TB, campaign, marker string) response {
	t.Helper()
	var v response
	c.want(t, http.StatusCreated, http.MethodPost, responsesPath(campaign), submission(marker), &v)
	return v
}

func responsesPath(campaign string) string { return "/v1/campaigns/" + campaign + "/responses" }

func responsePath(campaign, uuid string) string { return responsesPath(campaign) + "/" + uuid }

// submission is the body that creates a response with the marker in its answers.
func submission(marker string) map[string]any {
	return map[string]any{
		"user":      map[string]string{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"},
		"responses": map[string]any{"marker": map[string]any{"value": []string{marker}}},
	}
}

// campaign has the fields of a campaign that the tests check.
type campaign struct {
	UUID          string `json:"uuid"`
	Title         string `json:"title"`
	ResponseCount int    `json:"responseCount"`
}

// response has the fields of a response that the tests check.
type response struct {
	UUID      string `json:"uuid"`
	Reference string `json:"reference"`
	Status    string `json:"status"`
	User      struct {
		Email string `json:"email"`
	} `json:"user"`
	Responses map[string]struct {
		Value []string `json:"value"`
	} `json:"responses"`
}

// marker returns the marker that the response was created with, or an error if the response was changed.
func (r *response) marker() (string, error) {
	m := r.Responses["marker"]
	if len(r.Responses) != 1 || len(m.Value) != 1 || r.User.Email != "ada@example.com" {
		return "", fmt.Errorf("response %s is not as it was sent: %+v", r.UUID, *r)
	}
	return m.Value[0], nil
}

// page is one page of a list of responses.
type page struct {
	Items      []response `json:"items"`
	Total      int        `json:"total"`
	NextCursor string     `json:"nextCursor"`
}

// list reads all responses of the campaign, page by page, and checks the total of every page.
func (c *client) list(t testing.TB, campaign string) []response {
	t.Helper()
	var all []response
	var totals []int
	for cursor := ""; ; {
		path := responsesPath(campaign) + "?limit=1000"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		var p page
		c.want(t, http.StatusOK, http.MethodGet, path, nil, &p)
		all, totals = append(all, p.Items...), append(totals, p.Total)
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	for i, total := range totals {
		if total != len(all) {
			t.Errorf("page %d of %s says that there are %d responses, the pages list %d", i+1, campaign, total, len(all))
		}
	}
	return all
}
