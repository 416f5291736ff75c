package database

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/formsvc"
)

// A World has the identifiers that requests need.
type World struct {
	Key      string
	Campaign formsvc.Campaign
	webhook  formsvc.Webhook
}

// InventedWorld is for the ceiling, which accepts any key and campaign.
func InventedWorld() World {
	return World{
		Key:      "formsvc_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm",
		Campaign: formsvc.Campaign{ID: "01910000-0000-7000-8000-000000000000"},
	}
}

// ListPath returns the path of the responses of the campaign.
func (w *World) ListPath() string { return "/v1/campaigns/" + string(w.Campaign.ID) + "/responses" }

// Request returns the bytes of one request.
func (w *World) Request(method, path string, body []byte) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n"+
		"Authorization: Bearer %s\r\n", method, path, w.Key)
	if body != nil {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(b, "\r\n"...), body...)
}

// Creates create responses.
func (w *World) Creates() (loadgen.Workload, error) {
	load := loadgen.Workload{Status: 201}
	for i := range fixture.Bodies {
		body, err := json.Marshal(fixture.NewInput(fixture.Submission(i)))
		if err != nil {
			return load, fmt.Errorf("encode a response: %w", err)
		}
		load.Requests = append(load.Requests, w.Request("POST", w.ListPath(), body))
	}
	return load, nil
}

// KeyedCreates are creates with an idempotency key each.
func (w *World) KeyedCreates() (loadgen.Workload, error) {
	load, err := w.Creates()
	for i, request := range load.Requests {
		const before = "Content-Type: "
		at := bytes.Index(request, []byte(before))
		header := "Idempotency-Key: " + loadgen.SampleKey + "\r\n"
		load.Requests[i] = slices.Concat(request[:at], []byte(header), request[at:])
		load.Keys = append(load.Keys, at+len("Idempotency-Key: "))
	}
	return load, err
}

// Gets read single responses of a campaign of n.
func (w *World) Gets(n int) loadgen.Workload {
	load := loadgen.Workload{Status: 200}
	for _, i := range fixture.ReadNumbers(n) {
		load.Requests = append(load.Requests, w.Request("GET", w.ListPath()+"/"+string(fixture.StoredID(i)), nil))
	}
	return load
}

// List reads the first page.
func (w *World) List() loadgen.Workload {
	return loadgen.Workload{Status: 200, Requests: [][]byte{w.Page("")}}
}

// Page returns the request for one page, the first one when the cursor is "".
func (w *World) Page(cursor string) []byte {
	path := w.ListPath() + "?limit=" + strconv.Itoa(bench.PageSize)
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	return w.Request("GET", path, nil)
}

// deepPages is the number of distant pages that are read in turn.
const deepPages = 16

// Deep reads pages in the second half of a campaign of n, by cursors from the server.
func (w *World) Deep(ctx context.Context, addr string, n int) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: 200}
	for i := range deepPages {
		cursor, err := w.CursorAfter(ctx, addr, n/2+i*(n*9/20)/deepPages)
		if err != nil {
			return load, err
		}
		load.Requests = append(load.Requests, w.Page(cursor))
	}
	return load, nil
}

// CursorAfter returns the cursor of the page that follows response number offset of the list.
func (w *World) CursorAfter(ctx context.Context, addr string, offset int) (string, error) {
	find := w.Request("GET", fmt.Sprintf("%s?limit=1&offset=%d", w.ListPath(), offset), nil)
	body, err := loadgen.Ask(ctx, addr, find, http.StatusOK)
	if err != nil {
		return "", fmt.Errorf("find a cursor: %w", err)
	}
	var page struct {
		NextCursor string `json:"nextCursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return "", fmt.Errorf("find a cursor: %w", err)
	}
	if page.NextCursor == "" {
		return "", fmt.Errorf("find a cursor: none after response %d", offset)
	}
	return page.NextCursor, nil
}
