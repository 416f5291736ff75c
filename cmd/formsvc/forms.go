package main

import (
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/httpx/intake"
)

// formsPath is the path of public forms under the base URL.
const formsPath = "/f"

// forms returns the public forms.
func (c *serveCmd) forms(n *node) (http.Handler, error) {
	forms, err := intake.New(n.svc, &intake.Options{ClientAddress: c.clientAddress(), Logger: n.logger})
	if err != nil {
		return nil, err
	}
	return http.StripPrefix(formsPath, forms), nil
}

// withForms serves public forms beside the API, which has no routes under their path.
func withForms(api, forms http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, formsPath+"/") {
			forms.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}
