package settings_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/settings"
	"github.com/formsvc/toolkit/storage/memory"
)

// Serve the pages under your own login, which knows the account.
func Example() {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		panic(err)
	}
	pages, err := settings.New(svc, "/forms", &settings.Options{
		Authenticate: func(r *http.Request) (*settings.Visitor, error) {
			user, _, ok := r.BasicAuth() // your own login
			if !ok {
				return nil, formsvc.ErrUnauthenticated
			}
			account, err := svc.Accounts.ByName(r.Context(), user)
			return &settings.Visitor{AccountID: account.ID, Name: user}, err
		},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/settings/", http.StripPrefix("/settings", pages))

	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest("GET", "/settings/keys", nil))
	fmt.Println(recorder.Code)
	// Output: 401
}
