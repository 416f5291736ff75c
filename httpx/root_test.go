package httpx_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/httpx"
)

// Accept of a browser, and of a program without a preference.
const (
	browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	anyAccept     = "*/*"
)

// A rootDocument is the reply of GET / to programs.
type rootDocument struct {
	Title, Description string
	Links              []struct{ Title, Href string }
}

// links returns the addresses in the document, by title.
func (d *rootDocument) links() map[string]string {
	got := map[string]string{}
	for _, l := range d.Links {
		got[l.Title] = l.Href
	}
	return got
}

// The root links to the documentation and to the program's own pages, under any prefix, with and without a slash at its
// end.
func TestRootListsLinks(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.serve(&httpx.Options{Links: []httpx.Link{{Title: "Pages & more", Path: "/docs/docs.css"}, {Title: "Health", Path: "/healthz"}}})
	titles := []string{"Documentation", "Health", "OpenAPI description", "Pages & more"}
	strip := func(prefix string) http.Handler { return http.StripPrefix(prefix, w.api) }
	for _, mounted := range []struct {
		path    string
		handler http.Handler
	}{{"/", w.api}, {"/forms/", strip("/forms")}, {"/forms", strip("/forms")}, {"/a:b/forms/", strip("/a:b/forms")}, {"/a:b/forms", strip("/a:b/forms")}} {
		server := httptest.NewServer(mounted.handler)
		base, err := url.Parse(server.URL + mounted.path)
		if err != nil {
			t.Fatal(err)
		}
		leads := func(address string) {
			t.Helper()
			u, err := base.Parse(address)
			if err != nil || u.Host != base.Host {
				t.Fatalf("%s: %s: %v", base, address, err)
			}
			a, err := http.Get(u.String())
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s leads to %s: %d", base, u, a.StatusCode)
			}
		}
		ask := func(accept string) *http.Response {
			r, err := http.NewRequest(http.MethodGet, base.String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.Body.Close() })
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s for %s: %d", base, accept, a.StatusCode)
			}
			return a
		}
		var document rootDocument
		decode(t, string(content(t, ask(anyAccept).Body)), &document)
		if got := slices.Sorted(maps.Keys(document.links())); !slices.Equal(got, titles) {
			t.Errorf("%s: links to %q", base, got)
		}
		for _, address := range document.links() {
			leads(address)
		}
		page, err := html.Parse(ask(browserAccept).Body)
		if err != nil {
			t.Fatal(err)
		}
		list := references(page)
		if len(list) != len(titles)+2 { // with its icon and its style sheet
			t.Errorf("%s: the page refers to %q", base, list)
		}
		for _, address := range list {
			leads(address)
		}
		server.Close()
	}
}

// The document has the public address of the API, even if a proxy changed the path; the page has addresses relative to
// the browser's.
func TestRootWithBaseURL(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.serve(&httpx.Options{BaseURL: "https://forms.example.com/api/"})
	var document rootDocument
	decode(t, w.do("GET", "/", "").is(200, "").body, &document)
	want := map[string]string{
		"Documentation": "https://forms.example.com/api/docs", "OpenAPI description": "https://forms.example.com/api/openapi.json",
	}
	if got := document.links(); !maps.Equal(got, want) {
		t.Errorf("the document links to %v", got)
	}
	page := content(t, browse(w.api, "GET", "/", header("Accept", browserAccept)).Body)
	if strings.Contains(string(page), "example.com") || !strings.Contains(string(page), `href="./docs"`) {
		t.Errorf("the page is %s", page)
	}
}

// The root needs no key and isn't counted, HEAD works like GET, and browsers revalidate the page.
func TestRootHeaders(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(1, nil)
	tags := map[string]bool{}
	for accept, mediaType := range map[string]string{browserAccept: "text/html; charset=utf-8", anyAccept: "application/json"} {
		ask := func(method string, edits ...func(*http.Request)) *http.Response {
			return browse(w.api, method, "/", append(edits, as(w.mine.key), header("Accept", accept), header("X-Request-Id", "x"))...)
		}
		get, head := ask("GET"), ask("HEAD")
		body := content(t, get.Body)
		want := http.Header{
			"Content-Type": {mediaType}, "Content-Length": {strconv.Itoa(len(body))}, "X-Content-Type-Options": {"nosniff"},
			"Cache-Control": {"no-cache"}, "Vary": {"Accept"}, "Etag": get.Header["Etag"], "X-Request-Id": {"x"},
		}
		maps.Copy(want, pageHeader())
		if get.StatusCode != 200 || !reflect.DeepEqual(get.Header, want) {
			t.Errorf("%s: %d\n got %v\nwant %v", accept, get.StatusCode, get.Header, want)
		}
		if head.StatusCode != 200 || len(content(t, head.Body)) > 0 || !reflect.DeepEqual(head.Header, want) {
			t.Errorf("%s: HEAD: %d %v", accept, head.StatusCode, head.Header)
		}
		if json.Valid(body) != (accept == anyAccept) {
			t.Errorf("%s: %s", accept, body)
		}
		tag := get.Header.Get("Etag")
		if fresh := ask("GET", header("If-None-Match", tag)); fresh.StatusCode != 304 || fresh.Header.Get("Vary") != "Accept" || tags[tag] {
			t.Errorf("%s: If-None-Match %s: %d %v", accept, tag, fresh.StatusCode, fresh.Header)
		}
		tags[tag] = true
		if a := browse(w.api, "GET", "/", header("Accept", accept)); a.StatusCode != 200 {
			t.Errorf("%s without a key: %d", accept, a.StatusCode)
		}
	}
	w.do("GET", "/v1/me", "").is(200, "") // the only one that counts
}

// Other methods and queries on the root, and paths beside it.
func TestRootRefusesOtherRequests(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		if allow := w.do(method, "/", "").is(405, "method_not_allowed").header.Get("Allow"); allow != "GET, HEAD" {
			t.Errorf("%s: Allow: %s", method, allow)
		}
	}
	w.do("GET", "/?x=1", "").is(400, "invalid_parameter")
	for _, path := range []string{"/x", "/index.html", "/favicon.ico", "/%2F", "/.", "/settings"} {
		w.do("GET", path, "").is(404, "not_found")
	}
}

// Clients that prefer HTML get it, and all others get JSON.
func TestRootByAccept(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	for accept, page := range map[string]bool{
		browserAccept: true, "text/html": true, "TEXT/HTML": true, "text/*": true, "text/html;level=1;q=0.9, application/json;q=0.8": true,
		"*/*;q=0.1, text/html ; Q=0.2": true, "application/json;q=0, */*": true, "text/plain, text/html;q=0.1": true,
		"": false, anyAccept: false, "application/json": false, "text/html, application/json": false, "text/html;q=0": false,
		"text/html;q=0.5, */*": false, "text/html;q=0, text/*": false, "application/json, text/html;q=0.9": false, "image/png": false,
		"text/html;q=x": false, "application/*, text/html;q=0.9": false, "text/htmlx": false,
	} {
		a := browse(w.api, "GET", "/", header("Accept", strings.Split(accept, ", ")...))
		if got := a.Header.Get("Content-Type") == "text/html; charset=utf-8"; got != page {
			t.Errorf("Accept: %s: %s", accept, a.Header.Get("Content-Type"))
		}
	}
}
