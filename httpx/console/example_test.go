package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/storage/memory"
)

// Serve the pages under your own login, which knows the account.
func Example() {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	api, err := httpx.New(svc, nil)
	if err != nil {
		panic(err)
	}
	pages, err := console.New(svc, api, &console.Options{
		APIURL: "/forms",
		Authenticate: func(r *http.Request) (*console.Visitor, error) {
			user, _, ok := r.BasicAuth() // your own login
			if !ok {
				return nil, formsvc.ErrUnauthenticated
			}
			account, err := svc.Accounts.ByName(r.Context(), user)
			return &console.Visitor{AccountID: account.ID, Name: user}, err
		},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/forms/", http.StripPrefix("/forms", api))
	mux.Handle("/console/", http.StripPrefix("/console", pages))

	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest("GET", "/console/keys", nil))
	fmt.Println(recorder.Code)
	// Output: 401
}
