// Package httpx serves the REST API of a [formsvc.Service] over net/http: one
// [Handler], from one table of [Routes], that can be mounted under any prefix.
//
//	api, err := httpx.New(svc, nil)
//	// handle err
//	mux.Handle("/forms/", http.StripPrefix("/forms", api))
//
// # The API
//
// The rules that hold for all routes, such as the order of checks, errors, repeated
// requests, quotas, files and exports, are in the file README.md of this folder, for
// whoever writes a client. GET /openapi.json answers with the description in OpenAPI
// 3.1; GET /docs is a page for people: how to begin, and Swagger UI over that
// description, in which a key can be entered and every operation tried. It needs no
// other host and keeps no key. Both are public.
//
// The description is written by hand, in openapi.yaml. Every request and answer of the
// tests of this package is checked against it, so what it says is what happens.
//
// # Who may
//
// A request carries an API key of the service, or what [Options.Authenticate] takes for a
// login of your own. How often it fails is limited for each address
// ([Options.ClientAddress]), how often it succeeds by the quota of the service and by
// [Options.Rate].
//
// # What is bounded
//
// Memory is flat, whatever is sent and however slowly: [Options.MaxBody] and
// [Options.MaxBodies] bound JSON, [Options.MaxTransfers] files and exports, and
// [Options.MaxRequests] what is worked on at once. The server in front should bound its
// connections, since each takes memory.
//
// Package [github.com/formsvc/toolkit/httpx/settings] has web pages to manage keys and
// webhooks.
package httpx
