package httpx_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// mostFiltered is how many passages of each kind kin-openapi judges, since it compiles
// the schemas again for each: the tests would take six times as long.
const mostFiltered = 25

// filter has kin-openapi judge the passage too. It lets headers, parameters and formats
// pass that aren't documented, which is why the check has eyes of its own; but it reads
// the document in its own way.
func (x *passage) filter() {
	o := x.operation
	if !x.c.invented && o.answers[x.status].filtered.Add(1) > mostFiltered {
		return
	}
	item := x.c.contract.doc.Paths.Value(o.path)
	request := &openapi3filter.RequestValidationInput{
		Request: x.r.Clone(x.r.Context()), PathParams: o.pathParameters(x.r.URL.Path),
		Route: &routers.Route{
			Spec: x.c.contract.doc, Path: o.path, PathItem: item, Method: o.method, Operation: item.GetOperation(o.method),
		},
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true, SkipSettingDefaults: true,
			RejectWhenRequestBodyNotSpecified: true, IncludeResponseStatus: true,
		},
	}
	if x.status < http.StatusBadRequest {
		body, whole := x.sent.whole()
		request.Request.Body = io.NopCloser(bytes.NewReader(body))
		query := x.r.URL.Query()
		dropEmpty(query)
		request.Request.URL = &url.URL{Path: x.r.URL.Path, RawQuery: query.Encode()}
		request.Options.ExcludeRequestBody = !whole || o.body["application/json"] == nil
		if err := openapi3filter.ValidateRequest(x.r.Context(), request); err != nil {
			x.tell("kin-openapi: "+err.Error(), body)
		}
	}
	body, whole := x.body.whole()
	mediaType := x.header.Get("Content-Type")
	_, described := o.answers[x.status].content[mediaType] // or it is a file, of whatever type
	isJSON := described && (mediaType == "application/json" || mediaType == "application/problem+json")
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: x.status, Header: x.header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			MultiError: true, IncludeResponseStatus: true, ExcludeResponseBody: !whole || !isJSON,
		},
	}
	if err := openapi3filter.ValidateResponse(x.r.Context(), response); err != nil {
		x.tell("kin-openapi: "+err.Error(), body)
	}
}

// pathParameters returns what a path that matches has in the place of parameters.
func (o *operation) pathParameters(path string) map[string]string {
	found := map[string]string{}
	for i, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if p := o.segments[i].parameter; p != nil {
			found[p.name] = part
		}
	}
	return found
}
