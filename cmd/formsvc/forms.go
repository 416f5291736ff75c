package main

import (
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/httpx/intake"
)

// formsPath is the path of public forms under the base URL.
const formsPath = "/f"

// forms returns the public forms.
func (c *serveCmd) forms(n *node) (*intake.Handler, error) {
	return intake.New(n.svc, &intake.Options{ClientAddress: c.clientAddress(), Logger: n.logger})
}

// withForms serves public forms beside the API, which has no routes under their path.
func withForms(api http.Handler, forms *intake.Handler) http.Handler {
	pages := http.StripPrefix(formsPath, forms)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, formsPath+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}
