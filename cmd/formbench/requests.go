package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

// A world is what requests need to know about a database.
type world struct {
	key      string
	campaign formsvc.Campaign
	webhook  formsvc.Webhook
}

// inventedWorld is for the ceiling, which takes any key and campaign.
func inventedWorld() world {
	return world{
		key:      "formsvc_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm",
		campaign: formsvc.Campaign{ID: "01910000-0000-7000-8000-000000000000"},
	}
}

// A workload is the requests of a cell. Every connection sends all of them in
// turn, each beginning with another one.
type workload struct {
	status   int // that every answer must have
	requests [][]byte
	keys     []int // where each request has room for an idempotency key; nil for none
}

// sampleKey holds the place of an idempotency key, which is as long as a UUID.
const sampleKey = "00000000-0000-4000-8000-000000000000"

// fresh returns request number i with a key that no other request has, in buf.
func (w *workload) fresh(buf []byte, i, conn, count int) []byte {
	if w.keys == nil {
		return w.requests[i]
	}
	buf = append(buf[:0], w.requests[i]...)
	random := scatter(conn<<40 | count)
	copy(buf[w.keys[i]:], fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(random), uint16(random>>32), random>>48&0xfff, //nolint:gosec // parts of it
		random>>60, conn<<32|count))
	return buf
}

func (w *world) listPath() string { return "/v1/campaigns/" + string(w.campaign.ID) + "/responses" }

// request returns the bytes of one request.
func (w *world) request(method, path string, body []byte) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n"+
		"Authorization: Bearer %s\r\n", method, path, w.key)
	if body != nil {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(b, "\r\n"...), body...)
}

func (w *world) creates() (workload, error) {
	load := workload{status: 201}
	for i := range bodies {
		body, err := json.Marshal(newInput(submission(i)))
		if err != nil {
			return load, fmt.Errorf("encode a response: %w", err)
		}
		load.requests = append(load.requests, w.request("POST", w.listPath(), body))
	}
	return load, nil
}

// keyedCreates are creates with an idempotency key each.
func (w *world) keyedCreates() (workload, error) {
	load, err := w.creates()
	for i, request := range load.requests {
		const before = "Content-Type: "
		at := bytes.Index(request, []byte(before))
		header := "Idempotency-Key: " + sampleKey + "\r\n"
		load.requests[i] = slices.Concat(request[:at], []byte(header), request[at:])
		load.keys = append(load.keys, at+len("Idempotency-Key: "))
	}
	return load, err
}

// gets reads single responses of a campaign of n.
func (w *world) gets(n int) workload {
	load := workload{status: 200}
	for _, i := range readNumbers(n) {
		load.requests = append(load.requests, w.request("GET", w.listPath()+"/"+string(storedID(i)), nil))
	}
	return load
}

// list reads the first page.
func (w *world) list() workload {
	return workload{status: 200, requests: [][]byte{w.page("")}}
}

func (w *world) page(cursor string) []byte {
	path := w.listPath() + "?limit=" + strconv.Itoa(pageSize)
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	return w.request("GET", path, nil)
}

// deepPages is how many places far behind are read in turn.
const deepPages = 16

// deep reads pages in the second half of a campaign of n, by cursors it gets
// from the server.
func (w *world) deep(ctx context.Context, addr string, n int) (workload, error) {
	load := workload{status: 200}
	for i := range deepPages {
		cursor, err := w.cursorAfter(ctx, addr, n/2+i*(n*9/20)/deepPages)
		if err != nil {
			return load, err
		}
		load.requests = append(load.requests, w.page(cursor))
	}
	return load, nil
}

// cursorAfter returns the cursor of the page after response number offset of the
// list.
func (w *world) cursorAfter(ctx context.Context, addr string, offset int) (string, error) {
	find := w.request("GET", fmt.Sprintf("%s?limit=1&offset=%d", w.listPath(), offset), nil)
	body, err := ask(ctx, addr, find, http.StatusOK)
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
