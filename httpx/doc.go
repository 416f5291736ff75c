// Package httpx serves the REST API of a [formsvc.Service] over net/http. It has one [Handler], built from one table of
// [Routes], that you can mount under any prefix:
//
//	api, err := httpx.New(svc, nil)
//	// handle err
//	mux.Handle("/forms/", http.StripPrefix("/forms", api))
//
// # The API
//
// README.md in this folder has the rules that hold for all routes, for authors of clients: the order of checks, errors,
// idempotent retries, quotas, files and exports. GET /openapi.json returns the OpenAPI 3.1 document. GET /docs is a
// page for people: how to begin, and Swagger UI over that document, where you can enter a key and try every operation.
// The page needs no other host and stores no key. Both are public.
//
// The document is written by hand, in openapi.yaml. The tests of this package check every request and reply against it.
//
// # Authentication
//
// A request carries an API key of the service, or a login of your own that [Options.Authenticate] accepts. Failed
// attempts are limited for each client address ([Options.ClientAddress]); authenticated requests are limited by the
// quota of the service and by [Options.Rate].
//
// # Limits
//
// Memory stays flat, whatever clients send and however slowly. [Options.MaxMemory] limits JSON bodies, and
// [Options.MaxRequests] concurrent requests, files and exports. The server in front should limit its connections, since
// each takes memory.
//
// Package [github.com/formsvc/toolkit/httpx/console] has web pages to manage keys and webhooks, and package
// [github.com/formsvc/toolkit/httpx/intake] serves public forms, whose address is [Options.FormsURL].
package httpx
