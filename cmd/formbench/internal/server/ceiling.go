package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
)

// The ceiling is what anyone would write with net/http and encoding/json. It
// answers with the bytes of the API and does nothing else.

// newCeiling returns the handler, with a campaign of n responses.
func newCeiling(n int) http.Handler {
	campaign := database.InventedWorld().Campaign.ID
	template := fixture.NewResponseJSON(0, campaign)
	byID := make(map[string]*fixture.ResponseJSON)
	for _, i := range fixture.ReadNumbers(n) {
		r := fixture.NewResponseJSON(i, campaign)
		byID[string(r.UUID)] = r
	}
	page := &fixture.ListJSON{Total: n, Limit: bench.PageSize, NextCursor: strings.Repeat("A", 34)}
	for i := n - 1; i >= max(n-bench.PageSize, 0); i-- {
		page.Items = append(page.Items, fixture.NewResponseJSON(i, campaign))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, r *http.Request) {
		var in fixture.InputJSON
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := *template
		out.User, out.Responses = in.User, in.Responses
		SendJSON(w, http.StatusCreated, &out)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, _ *http.Request) {
		SendJSON(w, http.StatusOK, page)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses/{response_uuid}", func(w http.ResponseWriter, r *http.Request) {
		response, ok := byID[r.PathValue("response_uuid")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		SendJSON(w, http.StatusOK, response)
	})
	return mux
}

// SendJSON answers with a value.
func SendJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the generator notices
}
