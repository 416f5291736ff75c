package httpx_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// Mount the API in a mux of your own and send it a first request.
func Example() {
	ctx := context.Background()
	svc, err := formsvc.New(memory.New(), nil) // use sqlite or postgres in a program
	if err != nil {
		panic(err)
	}
	api, err := httpx.New(svc, nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	server := httptest.NewServer(mux)
	defer server.Close()

	_, key, err := svc.Accounts.CreateWithKey(ctx, "default", formsvc.KeyInput{
		Name: "website", Permissions: []formsvc.Permission{formsvc.CampaignsWrite},
	})
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/forms/v1/campaigns", strings.NewReader(`{"title":"Summer grant"}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+key.Value)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, strings.HasPrefix(answer.Header.Get("Location"), "/forms/v1/campaigns/"))
	// Output: 201 Created true
}

// Use your own login beside API keys. The program decides on the permissions.
func ExampleOptions() {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	api, err := httpx.New(svc, &httpx.Options{
		Authenticate: func(r *http.Request) (*formsvc.Principal, error) {
			user, _, ok := r.BasicAuth() // your own login
			if !ok {
				return nil, formsvc.ErrUnauthenticated
			}
			account, err := svc.Accounts.ByName(r.Context(), user)
			return &formsvc.Principal{AccountID: account.ID, Permissions: formsvc.AllPermissions()}, err
		},
	})
	if err != nil {
		panic(err)
	}
	recorder := httptest.NewRecorder()
	api.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/v1/me", http.NoBody))
	fmt.Println(recorder.Code)
	// Output: 401
}
