package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/httpx"
)

// Every route has a series under its pattern, and clients can't create others.
func TestRequestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	m := newRouteNames()
	id := "0198b0e1-3e6f-7c1a-8a4e-0123456789ab"
	for _, route := range httpx.Routes() {
		segments := strings.Split(route.Pattern, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = id
			}
		}
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: strings.Join(segments, "/")}}
		equal(t, m.route(r), route.Pattern, "%s is counted as %s", route.Pattern)
	}
	for _, path := range []string{
		"", "*", "/v1", "/v1/campaigns/",
		"/v1/" + id, "/" + strings.Repeat("a", 10000), strings.Repeat("/"+id, 1000), "/v1/campaigns/" + id + "/responses/" + id + "/x",
	} {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}
		equal(t, m.route(r), labelOther, "%.60q is counted as %s", path)
	}
}
