package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/formsvc"
)

// A pocketRecord is a response as PocketBase takes it.
type pocketRecord struct {
	Reference string     `json:"reference"`
	Status    string     `json:"status"`
	Campaign  formsvc.ID `json:"campaign"`
	fixture.InputJSON
}

func pocketResponse(i int) pocketRecord {
	return pocketRecord{
		Reference: fixture.StoredReference(i), Status: formsvc.StatusPending, Campaign: database.InventedWorld().Campaign.ID,
		InputJSON: fixture.NewInput(fixture.Submission(i)),
	}
}

// pocketRequest returns the bytes of one request. The token may be "".
func pocketRequest(method, path, token string, body []byte) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: formbench\r\nAccept: application/json\r\n", method, path)
	if token != "" {
		b = fmt.Appendf(b, "Authorization: %s\r\n", token)
	}
	if body != nil {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(b, "\r\n"...), body...)
}

func recordsPath(collection string) string { return "/api/collections/" + collection + "/records" }

// createPocket makes responses, one row each.
func createPocket(_ context.Context, collection, token string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	for i := range fixture.Bodies {
		body, err := json.Marshal(pocketResponse(i))
		if err != nil {
			return load, err
		}
		load.Requests = append(load.Requests, pocketRequest(http.MethodPost, recordsPath(collection), token, body))
	}
	return load, nil
}

// batchPocket makes responses, each with its event and delivery.
func batchPocket(ctx context.Context, _, token string) (loadgen.Workload, error) {
	load := loadgen.Workload{Status: http.StatusOK}
	payload, err := database.SamplePayload(ctx)
	if err != nil {
		return load, err
	}
	for i := range fixture.Bodies {
		r := pocketResponse(i)
		type create struct {
			Method string `json:"method"`
			URL    string `json:"url"`
			Body   any    `json:"body"`
		}
		body, err := json.Marshal(map[string][]create{"requests": {
			{http.MethodPost, recordsPath(pocketbase.Responses), r},
			{http.MethodPost, recordsPath(pocketbase.Events), map[string]any{
				"type": "response.created", "response": r.Reference, "payload": json.RawMessage(payload),
			}},
			{http.MethodPost, recordsPath(pocketbase.Deliveries), map[string]any{
				"event": r.Reference, "webhook": r.Campaign, "state": "pending", "due": "2026-01-01 00:00:00.000Z",
			}},
		}})
		if err != nil {
			return load, err
		}
		load.Requests = append(load.Requests, pocketRequest(http.MethodPost, "/api/batch", token, body))
	}
	return load, nil
}

// getPocket reads single responses of n.
func getPocket(n int, token string) loadgen.Workload {
	load := loadgen.Workload{Status: http.StatusOK}
	for _, i := range fixture.ReadNumbers(n) {
		path := recordsPath(pocketbase.Responses) + "/" + pocketID(i)
		load.Requests = append(load.Requests, pocketRequest(http.MethodGet, path, token, nil))
	}
	return load
}

// listPocket reads a page of the campaign, newest first, with the total.
func listPocket(page int, sort string) loadgen.Workload {
	q := url.Values{
		"page": {fmt.Sprint(page)}, "perPage": {fmt.Sprint(bench.PageSize)}, "sort": {sort},
		"filter": {fmt.Sprintf("campaign=%q", database.InventedWorld().Campaign.ID)},
	}
	path := recordsPath(pocketbase.Responses) + "?" + q.Encode()
	return loadgen.Workload{Status: http.StatusOK, Requests: [][]byte{pocketRequest(http.MethodGet, path, "", nil)}}
}
