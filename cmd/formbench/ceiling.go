package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// The ceiling is what anyone would write with net/http and encoding/json. It
// answers with the bytes of the API and does nothing else.

type userJSON struct {
	Email     string `json:"email"`
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

type answerJSON struct {
	Value []string `json:"value"`
}

type inputJSON struct {
	User      userJSON              `json:"user"`
	Responses map[string]answerJSON `json:"responses"`
}

type responseJSON struct {
	UUID         formsvc.ID            `json:"uuid"`
	Reference    string                `json:"reference"`
	Status       string                `json:"status"`
	User         userJSON              `json:"user"`
	Responses    map[string]answerJSON `json:"responses"`
	CreatedAt    string                `json:"createdAt"`
	CampaignUUID formsvc.ID            `json:"campaignUuid"`
	UpdatedAt    string                `json:"updatedAt"`
	CompletedAt  *string               `json:"completedAt"`
}

type listJSON struct {
	Items      []*responseJSON `json:"items"`
	Total      int             `json:"total"`
	Limit      int             `json:"limit"`
	Offset     int             `json:"offset"`
	NextCursor string          `json:"nextCursor"`
}

func newInput(user formsvc.User, answers []formsvc.Answer) inputJSON {
	in := inputJSON{
		User:      userJSON{Email: user.Email, FirstName: user.FirstName, LastName: user.LastName},
		Responses: make(map[string]answerJSON, len(answers)),
	}
	for _, a := range answers {
		in.Responses[a.Name] = answerJSON{Value: a.Value}
	}
	return in
}

func newResponseJSON(i int, campaign formsvc.ID) *responseJSON {
	in := newInput(submission(i))
	at := storedAt(i).Format("2006-01-02T15:04:05.000Z")
	return &responseJSON{
		UUID: storedID(i), Reference: storedReference(i), Status: formsvc.StatusPending, User: in.User,
		Responses: in.Responses, CreatedAt: at, CampaignUUID: campaign, UpdatedAt: at,
	}
}

// newCeiling returns the handler, with a campaign of n responses.
func newCeiling(n int) http.Handler {
	campaign := inventedWorld().campaign.ID
	template := newResponseJSON(0, campaign)
	byID := make(map[string]*responseJSON)
	for _, i := range readNumbers(n) {
		r := newResponseJSON(i, campaign)
		byID[string(r.UUID)] = r
	}
	page := &listJSON{Total: n, Limit: pageSize, NextCursor: strings.Repeat("A", 34)}
	for i := n - 1; i >= max(n-pageSize, 0); i-- {
		page.Items = append(page.Items, newResponseJSON(i, campaign))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, r *http.Request) {
		var in inputJSON
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := *template
		out.User, out.Responses = in.User, in.Responses
		sendJSON(w, http.StatusCreated, &out)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses", func(w http.ResponseWriter, _ *http.Request) {
		sendJSON(w, http.StatusOK, page)
	})
	mux.HandleFunc("GET /v1/campaigns/{uuid}/responses/{response_uuid}", func(w http.ResponseWriter, r *http.Request) {
		response, ok := byID[r.PathValue("response_uuid")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		sendJSON(w, http.StatusOK, response)
	})
	return mux
}

func sendJSON(w http.ResponseWriter, status int, v any) {
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
