package httpx_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// browse sends a request without a key, as a browser does.
func browse(api http.Handler, method, target string, edits ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for _, edit := range edits {
		edit(r)
	}
	recorder := httptest.NewRecorder()
	api.ServeHTTP(recorder, r)
	return recorder.Result()
}

// content returns the body.
func content(t *testing.T, from io.Reader) []byte {
	t.Helper()
	return must(io.ReadAll(from))
}

// The files need no key, have the right policies, are cached and compressed for clients that accept it, with a different ETag for each
// encoding.
func TestDocsFiles(t *testing.T) {
	w := newWorld(t, nil)
	for path, file := range map[string]struct {
		mediaType string
		zipped    bool // whether it is stored compressed
	}{
		"/":                    {"application/json", false},
		"/docs":                {"text/html; charset=utf-8", false},
		"/docs/docs.css":       {"text/css; charset=utf-8", false},
		"/docs/docs.js":        {"text/javascript; charset=utf-8", false},
		"/docs/favicon.png":    {"image/png", false},
		"/docs/swagger-ui.css": {"text/css; charset=utf-8", true},
		"/docs/swagger-ui.js":  {"text/javascript; charset=utf-8", true},
	} {
		plain := content(t, browse(w.api, "GET", path).Body)
		tags := map[string]bool{}
		for accept, zipped := range map[string]bool{
			"gzip": true, "x-gzip": true, "deflate, gzip;q=1.0, *;q=0.5": true, "*": false, "*;q=0, gzip": true,
			"": false, "gzip; q=0.000": false, "gzip;q=0, *": false, "*;q=0": false, "gzipped": false, "gzip;q=x": false,
		} {
			if !file.zipped && accept != "" && accept != "gzip" {
				continue
			}
			ask := func(method string, edits ...func(*http.Request)) *http.Response {
				return browse(w.api, method, path, append(edits, header("Accept-Encoding", strings.Split(accept, ", ")...), header("X-Request-Id", "x"))...)
			}
			get, head := ask("GET"), ask("HEAD")
			what, body, tag := path+" as "+accept, content(t, get.Body), get.Header.Get("Etag")
			if get.StatusCode != 200 || head.StatusCode != 200 || len(content(t, head.Body)) > 0 || !reflect.DeepEqual(get.Header, head.Header) {
				t.Errorf("%s: %d, HEAD %d:\n GET %v\nHEAD %v", what, get.StatusCode, head.StatusCode, get.Header, head.Header)
			}
			want := http.Header{
				"Content-Type": {file.mediaType}, "Content-Length": {strconv.Itoa(len(body))}, "X-Content-Type-Options": {"nosniff"},
				"Cache-Control": {"no-cache"}, "Etag": {tag}, "X-Request-Id": {"x"},
			}
			if file.zipped {
				want["Vary"] = []string{"Accept-Encoding"}
			}
			if zipped = zipped && file.zipped; zipped {
				want["Content-Encoding"] = []string{"gzip"}
				r := must(gzip.NewReader(bytes.NewReader(body)))
				body = content(t, r)
			}
			if path == "/" {
				want["Vary"] = []string{"Accept"}
			}
			if path == "/" || path == "/docs" {
				maps.Copy(want, http.Header{
					"Content-Security-Policy": {"default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; " +
						"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
					"Referrer-Policy":            {"no-referrer"},
					"Cross-Origin-Opener-Policy": {"same-origin"},
				})
			}
			if !reflect.DeepEqual(get.Header, want) || !bytes.Equal(body, plain) || len(body) == 0 {
				t.Errorf("%s: %d bytes\n got %v\nwant %v", what, len(body), get.Header, want)
			}
			tags[tag] = zipped
			for _, same := range []string{tag, `"x", W/` + tag, "*"} {
				fresh := ask("GET", header("If-None-Match", same))
				if fresh.StatusCode != 304 || fresh.Header.Get("Etag") != tag || fresh.Header.Get("Vary") != get.Header.Get("Vary") || len(content(t, fresh.Body)) > 0 {
					t.Errorf("%s: If-None-Match %s: %d %v", what, same, fresh.StatusCode, fresh.Header)
				}
			}
		}
		if want := map[bool]int{true: 2, false: 1}[file.zipped]; len(tags) != want {
			t.Errorf("%s has the tags %v", path, tags)
		}
	}
}

// Unknown files get 404, and the address with a slash redirects.
func TestDocsUnknownFilesAndTrailingSlash(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/docs/page.html", "/docs/docs.css/", "/docs/..", "/docs/swagger-ui.js.gz"} {
		w.do("GET", path, "").is(404, "not_found")
	}
	a := browse(w.api, "HEAD", "/docs/")
	if got := a.Header.Get("Location"); a.StatusCode != 308 || got != "../docs" || a.Header.Get("Content-Length") != "0" {
		t.Errorf("%d to %q", a.StatusCode, got)
	}
}

// docsPage returns the parsed page.
func docsPage(t *testing.T) *html.Node {
	t.Helper()
	return must(html.Parse(browse(newWorld(t, nil).api, "GET", "/docs").Body))
}

func attribute(n *html.Node, name string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

// text returns the text of the element with the id.
func text(t *testing.T, page *html.Node, id string) string {
	t.Helper()
	for n := range page.Descendants() {
		if attribute(n, "id") != id {
			continue
		}
		var b strings.Builder
		for part := range n.Descendants() {
			if part.Type == html.TextNode {
				b.WriteString(part.Data)
			}
		}
		return b.String()
	}
	t.Fatalf("the page has no #%s", id)
	return ""
}

// Under any prefix, the root and the page of the documentation refer to what exists below the prefix. The root has the links of the
// options too.
func TestPagesUnderAPrefix(t *testing.T) {
	w := newWorld(t, &httpx.Options{Links: []httpx.Link{{Title: "Pages & more", Path: "/docs/docs.css"}, {Title: "Health", Path: "/healthz"}}})
	for _, prefix := range []string{"", "/some/forms", "/a:b/forms"} {
		server := httptest.NewServer(http.StripPrefix(prefix, w.api))
		get := func(address, accept string) *http.Response {
			t.Helper()
			r := w.request("GET", address, "", header("Accept", accept), func(r *http.Request) { r.RequestURI = "" })
			a := must(http.DefaultClient.Do(r))
			t.Cleanup(func() { _ = a.Body.Close() })
			if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Request.URL.Path+"/", prefix+"/") {
				t.Errorf("%s leads to %s: %d", address, a.Request.URL, a.StatusCode)
			}
			return a
		}
		var document rootDocument
		decode(t, string(content(t, get(server.URL+prefix+"/", anyAccept).Body)), &document)
		if got := slices.Sorted(maps.Keys(document.links())); !slices.Equal(got, f("Documentation", "Health", "OpenAPI description", "Pages & more")) {
			t.Errorf("%s: links to %q", prefix, got)
		}
		for path, least := range map[string]int{"/": 6, "/docs/": 8, "": 6} { // /docs/ redirects
			answer := get(server.URL+prefix+path, browserAccept)
			page := must(html.Parse(answer.Body))
			list := references(page)
			for _, address := range list {
				u, err := answer.Request.URL.Parse(address)
				if err != nil || "http://"+u.Host != server.URL {
					t.Fatalf("%s: %s: %v", prefix+path, address, err)
				}
				if get(strings.TrimSuffix(u.String(), "#"+u.EscapedFragment()), browserAccept); u.Fragment != "" {
					text(t, page, u.Fragment)
				}
			}
			if len(list) < least {
				t.Errorf("%s: the page refers to %q", prefix+path, list)
			}
		}
		for _, address := range document.links() {
			get(server.URL+address, anyAccept)
		}
		server.Close()
	}
}

// references returns the addresses in the page.
func references(page *html.Node) []string {
	var list []string
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src", "action", "data", "srcset", "poster", "formaction", "background":
				list = append(list, a.Val)
			}
		}
	}
	return list
}

// The page's policy forbids inline code, and none of our files names another host.
func TestDocsLoadNothingElse(t *testing.T) {
	page := docsPage(t)
	for n := range page.Descendants() {
		if (n.Data == "script" && (attribute(n, "src") == "" || n.FirstChild != nil)) || n.Data == "style" || n.Data == "base" || n.Data == "iframe" {
			t.Errorf("<%s> %v", n.Data, n.Attr)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "http-equiv" {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	}
	for _, address := range references(page) {
		if u, err := url.Parse(address); err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(address, "/") {
			t.Errorf("%s is not relative", address)
		}
	}
	elsewhere := regexp.MustCompile(`(?i)//[a-z0-9]|@import|url\((?:["']?)[^d"')]`)
	w := newWorld(t, nil)
	for _, path := range []string{"/docs/docs.css", "/docs/docs.js"} {
		equal(t, elsewhere.FindString(string(content(t, browse(w.api, "GET", path).Body))), "", "%s has %q", path)
	}
	images := regexp.MustCompile(`(?i)@import|url\(["']?(?:[^d"']|d[^a])[^)]*`)
	equal(t, images.FindString(string(content(t, browse(w.api, "GET", "/docs/swagger-ui.css").Body))), "", "swagger-ui.css loads %q")
}

// Every number in the text agrees with the code.
func TestDocsNumbers(t *testing.T) {
	page := docsPage(t)
	equal(t, formsvc.DefaultQuotaWindow, time.Hour, "the quota is not for an hour: %v")
	for id, want := range map[string]string{
		"limit-quota":    fmt.Sprintf("%d an hour for each key", formsvc.DefaultQuota),
		"limit-body":     fmt.Sprintf("%d MiB", httpx.MaxBody>>20),
		"limit-file":     fmt.Sprintf("%d MB", formsvc.DefaultMaxFile/1_000_000),
		"limit-webhooks": strconv.Itoa(formsvc.MaxWebhooks),
		"limit-payload":  fmt.Sprintf("%d MB; beyond that it comes without the answers and with truncated", formsvc.MaxPayload/1_000_000),
		"limit-page":     fmt.Sprintf("1 to %d items with limit, %d without", formsvc.MaxLimit, formsvc.DefaultLimit),
		"limit-key":      fmt.Sprintf("%d characters, remembered for %.0f hours", formsvc.MaxIdempotencyKey, formsvc.IdempotencyTTL.Hours()),
	} {
		equal(t, text(t, page, id), want, "#%s is %q", id)
	}
	var minutes []string
	for _, d := range delivery.DefaultRetries() {
		minutes = append(minutes, fmt.Sprintf("%.0f", d.Minutes()))
	}
	last := len(minutes) - 1
	prose := strings.Join(strings.Fields(text(t, page, "content")), " ")
	for _, want := range []string{
		fmt.Sprintf("within %.0f seconds", delivery.DefaultTimeout.Seconds()),
		strings.Join(minutes[:last], ", ") + " and " + minutes[last] + " minutes later",
		fmt.Sprintf("stored for %.0f days", formsvc.DefaultRetention.Hours()/24),
		fmt.Sprintf("Repeated within %.0f hours", formsvc.IdempotencyTTL.Hours()),
	} {
		if !strings.Contains(prose, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The example problem and delivery on the page are as documented.
func TestDocsExamples(t *testing.T) {
	page, c := docsPage(t), theContract(t)
	noError(t, c.fitsJSON(anyProblem, []byte(text(t, page, "problem"))))
	noError(t, c.fitsEvent("response.created", []byte(text(t, page, "payload"))))
}

func decode(t *testing.T, from string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(from), v); err != nil {
		t.Fatalf("%v: %s", err, from)
	}
}

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

// The document has the public address of the API, even if a proxy changed the path; the page has addresses relative to
// the browser's.
func TestRootWithBaseURL(t *testing.T) {
	w := newWorld(t, nil)
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

// Browsers get a page, all others get JSON.
func TestRootByAccept(t *testing.T) {
	w := newWorld(t, nil)
	for accept, page := range map[string]bool{
		browserAccept: true, "text/html": true, "": false, anyAccept: false, "application/json": false, "image/png": false,
	} {
		a := browse(w.api, "GET", "/", header("Accept", strings.Split(accept, ", ")...))
		equal(t, a.Header.Get("Content-Type") == "text/html; charset=utf-8", page, "Accept: %s: %s is a page: %t", accept, a.Header.Get("Content-Type"))
	}
}
