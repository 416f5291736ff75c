package httpx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// filter also checks the passage with kin-openapi. That accepts undocumented headers, parameters and formats, so our
// own check is stricter, but it interprets the document independently. It compiles the schemas for each passage, which
// is slow, so each test checks one passage of each kind, independently of the tests before it.
func (x *passage) filter() {
	o := x.operation
	if !x.c.first(x.kind()) {
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
		o.spare(request.Request)
		request.Options.ExcludeRequestBody = !whole || o.body["application/json"] == nil
		if err := openapi3filter.ValidateRequest(x.r.Context(), request); err != nil {
			x.tell("kin-openapi: "+err.Error(), body)
		}
	}
	body, whole := x.body.whole()
	mediaType := x.header.Get("Content-Type")
	_, described := o.answers[x.status].content[mediaType] // otherwise it is a file of any type
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

// spare removes from a request what the schemas allow and kin-openapi doesn't: an integer that doesn't fit into 64
// bits.
func (o *operation) spare(r *http.Request) {
	query := r.URL.Query()
	for _, p := range o.parameters {
		if n, err := strconv.ParseInt(query.Get(p.name), 10, 64); p.in == "query" && p.kind == "integer" && errors.Is(err, strconv.ErrRange) {
			query.Set(p.name, strconv.FormatInt(n, 10)) // the nearest one
			r.URL.RawQuery = query.Encode()
		}
	}
}

// first reports whether the test has had no passage of this kind yet.
func (c *checker) first(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[kind] {
		return false
	}
	c.kinds[kind] = true
	return true
}

// kind returns what kin-openapi may judge differently. Passages of the same kind differ only in the path and in the
// values of their bodies, which our own check covers. Of a refused request nothing is checked.
func (x *passage) kind() string {
	var b strings.Builder
	fmt.Fprintln(&b, x.operation.id, x.r.Method, x.status, x.header.Get("Content-Type"), outline(&x.body))
	for _, name := range slices.Sorted(maps.Keys(x.header)) {
		fmt.Fprintln(&b, name)
	}
	if x.status >= http.StatusBadRequest {
		return b.String()
	}
	fmt.Fprintln(&b, x.r.URL.RawQuery, x.r.Header.Get("Content-Type"), outline(&x.sent))
	for _, p := range x.operation.parameters {
		if p.in == "header" {
			fmt.Fprintf(&b, "%s: %q\n", p.name, x.r.Header.Values(p.name))
		}
	}
	return b.String()
}

// outline returns the fields of a JSON body with the types of their values. It merges the elements of lists.
func outline(k *kept) string {
	body, whole := k.whole()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Sprintf("no JSON: %t, %t", len(body) > 0, whole)
	}
	seen := map[string]bool{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		seen[fmt.Sprintf("%s %T", at, v)] = true
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(at+"/"+name, value)
			}
		case []any:
			for _, element := range v {
				walk(at+"/-", element)
			}
		}
	}
	walk("", v)
	return strings.Join(slices.Sorted(maps.Keys(seen)), "\n")
}

// pathParameters returns the parameters in a path that matches.
func (o *operation) pathParameters(path string) map[string]string {
	found := map[string]string{}
	for i, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if p := o.segments[i].parameter; p != nil {
			found[p.name] = part
		}
	}
	return found
}
