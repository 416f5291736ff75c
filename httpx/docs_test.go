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
	"github.com/formsvc/toolkit/webhook"
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
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// docsFiles has the files of the page and their types. zipped is true for those stored compressed.
var docsFiles = map[string]struct {
	mediaType string
	zipped    bool
}{
	"/docs":                {"text/html; charset=utf-8", false},
	"/docs/docs.css":       {"text/css; charset=utf-8", false},
	"/docs/docs.js":        {"text/javascript; charset=utf-8", false},
	"/docs/favicon.png":    {"image/png", false},
	"/docs/swagger-ui.css": {"text/css; charset=utf-8", true},
	"/docs/swagger-ui.js":  {"text/javascript; charset=utf-8", true},
}

// The files need no key, have the right policies, and are cached.
func TestDocsFiles(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	for path, file := range docsFiles {
		for _, encoding := range []string{"", "gzip"} {
			ask := func(edits ...func(*http.Request)) func(method string) *http.Response {
				return func(method string) *http.Response {
					return browse(w.api, method, path, append(edits, header("Accept-Encoding", encoding), header("X-Request-Id", "x"))...)
				}
			}
			get, head := ask()("GET"), ask()("HEAD")
			what, body := path+" as "+encoding, content(t, get.Body)
			if get.StatusCode != 200 || head.StatusCode != 200 || len(body) == 0 || len(content(t, head.Body)) > 0 {
				t.Errorf("%s: %d with %d bytes, HEAD %d", what, get.StatusCode, len(body), head.StatusCode)
			}
			if !reflect.DeepEqual(get.Header, head.Header) {
				t.Errorf("%s:\n GET %v\nHEAD %v", what, get.Header, head.Header)
			}
			want := http.Header{
				"Content-Type": {file.mediaType}, "Content-Length": {strconv.Itoa(len(body))}, "X-Content-Type-Options": {"nosniff"},
				"Cache-Control": {"no-cache"}, "Etag": get.Header["Etag"], "X-Request-Id": {"x"},
			}
			if file.zipped {
				want["Vary"] = []string{"Accept-Encoding"}
				if encoding != "" {
					want["Content-Encoding"] = []string{encoding}
				}
			}
			if path == "/docs" {
				maps.Copy(want, pageHeader())
			}
			if !reflect.DeepEqual(get.Header, want) {
				t.Errorf("%s:\n got %v\nwant %v", what, get.Header, want)
			}
			for _, tag := range []string{get.Header.Get("Etag"), `"x", W/` + get.Header.Get("Etag"), "*"} {
				fresh := ask(header("If-None-Match", tag))("GET")
				if fresh.StatusCode != 304 || fresh.Header.Get("Etag") != get.Header.Get("Etag") || fresh.Header.Get("Cache-Control") != "no-cache" ||
					fresh.Header.Get("Vary") != get.Header.Get("Vary") || len(content(t, fresh.Body)) > 0 {
					t.Errorf("%s: If-None-Match %s: %d %v", what, tag, fresh.StatusCode, fresh.Header)
				}
			}
			if stale := ask(header("If-None-Match", `"x"`))("GET"); stale.StatusCode != 200 {
				t.Errorf("%s: another tag: %d", what, stale.StatusCode)
			}
		}
	}
}

// pageHeader returns the headers that only the page has: its policies.
func pageHeader() http.Header {
	return http.Header{
		"Content-Security-Policy": {"default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":            {"no-referrer"},
		"Cross-Origin-Opener-Policy": {"same-origin"},
	}
}

// Clients that accept gzip get it. The content is the same for all, with a different ETag for each encoding.
func TestDocsEncodings(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	for path, file := range docsFiles {
		plain := browse(w.api, "GET", path)
		want := content(t, plain.Body)
		for accept, zipped := range map[string]bool{
			"gzip": true, "GZIP": true, "x-gzip": true, "deflate, gzip;q=1.0, *;q=0.5": true, "*": true, "br, gzip ; q=0.001": true, "*;q=0, gzip": true,
			"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0, *": false, "*, gzip;q=0": false,
			"*;q=0": false, "gzipped": false, "gzip;q=x": false,
		} {
			a := browse(w.api, "GET", path, header("Accept-Encoding", strings.Split(accept, ", ")...))
			body := content(t, a.Body)
			zipped = zipped && file.zipped
			if got := a.Header.Get("Content-Encoding") == "gzip"; got != zipped || (a.Header.Get("Etag") != plain.Header.Get("Etag")) != zipped {
				t.Errorf("%s for %q: compressed is %t, with the tag %s", path, accept, got, a.Header.Get("Etag"))
				continue
			}
			if zipped {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				body = content(t, r)
			}
			if !bytes.Equal(body, want) {
				t.Errorf("%s for %q: another content", path, accept)
			}
		}
	}
}

// Unknown files get 404, and the address with a slash redirects.
func TestDocsUnknownFilesAndTrailingSlash(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	for _, path := range []string{"/docs/page.html", "/docs/x", "/docs/docs.css/", "/docs/..", "/docs/swagger-ui.js.gz", "/docs//docs.css", "/docs/docs/docs.css"} {
		w.do("GET", path, "").is(404, "not_found")
	}
	for path := range docsFiles {
		w.do("GET", path+"?v=1", "").is(400, "invalid_parameter")
		w.do("POST", path, "").is(405, "method_not_allowed")
	}
	for _, method := range []string{"GET", "HEAD"} {
		a := browse(w.api, method, "/docs/")
		if got := a.Header.Get("Location"); a.StatusCode != 308 || got != "../docs" || a.Header.Get("Content-Length") != "0" {
			t.Errorf("%s: %d to %q", method, a.StatusCode, got)
		}
	}
}

// Requests for the documentation don't count for the quota.
func TestDocsAreNotCounted(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(1, nil)
	for range 3 {
		for path := range docsFiles {
			a := browse(w.api, "GET", path, as(w.mine.key))
			if a.StatusCode != 200 || a.Header.Get("X-RateLimit-Limit") != "" {
				t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
			}
		}
		if a := browse(w.api, "GET", "/openapi.json", as(w.mine.key)); a.StatusCode != 200 {
			t.Errorf("openapi.json: %d", a.StatusCode)
		}
	}
	w.do("GET", "/v1/me", "").is(200, "")
	w.do("GET", "/v1/me", "").is(429, "quota_exceeded")
}

// docsPage returns the parsed page.
func docsPage(t *testing.T) *html.Node {
	t.Helper()
	page, err := html.Parse(browse(newWorld(t, openMemory(t), nil).api, "GET", "/docs").Body)
	if err != nil {
		t.Fatal(err)
	}
	return page
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

// Under any prefix all files of the page exist, and are below the prefix.
func TestDocsUnderAPrefix(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	mux := http.NewServeMux()
	mux.Handle("/", w.api)
	mux.Handle("/some/forms/", http.StripPrefix("/some/forms", w.api))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, prefix := range []string{"", "/some/forms"} {
		base, err := url.Parse(server.URL + prefix + "/docs")
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Get(base.String() + "/") // follows the redirect
		if err != nil {
			t.Fatal(err)
		}
		page, err := html.Parse(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.Request.URL.Path != base.Path {
			t.Fatalf("%s/: %v, from %s", base, err, answer.Request.URL)
		}
		found := 0
		for _, address := range references(page) {
			u, err := base.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if u.Host != base.Host || !strings.HasPrefix(u.Path, prefix+"/") {
				t.Errorf("%s: %s is elsewhere", base, u)
			}
			a, err := http.Get(u.String())
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			if a.StatusCode != 200 {
				t.Errorf("%s: %s: %d", base, u, a.StatusCode)
			}
			if u.Fragment != "" {
				text(t, page, u.Fragment)
			}
			found++
		}
		if found < 8 {
			t.Errorf("%s: only %d references", base, found)
		}
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
	w := newWorld(t, openMemory(t), nil)
	for _, path := range []string{"/docs/docs.css", "/docs/docs.js"} {
		if found := elsewhere.FindString(string(content(t, browse(w.api, "GET", path).Body))); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
	images := regexp.MustCompile(`(?i)@import|url\(["']?(?:[^d"']|d[^a])[^)]*`)
	if found := images.FindString(string(content(t, browse(w.api, "GET", "/docs/swagger-ui.css").Body))); found != "" {
		t.Errorf("swagger-ui.css loads %q", found)
	}
}

// Every number in the text agrees with the code.
func TestDocsNumbers(t *testing.T) {
	page := docsPage(t)
	if formsvc.DefaultQuotaWindow != time.Hour {
		t.Error("the quota is not for an hour")
	}
	for id, want := range map[string]string{
		"limit-quota":    fmt.Sprintf("%d an hour for each key", formsvc.DefaultQuota),
		"limit-body":     fmt.Sprintf("%d MiB", httpx.DefaultMaxBody>>20),
		"limit-file":     fmt.Sprintf("%d MB", formsvc.DefaultMaxFile/1_000_000),
		"limit-webhooks": strconv.Itoa(formsvc.MaxWebhooks),
		"limit-payload":  fmt.Sprintf("%d MB; beyond that it comes without the answers and with truncated", formsvc.MaxPayload/1_000_000),
		"limit-page":     fmt.Sprintf("1 to %d items with limit, %d without", formsvc.MaxLimit, formsvc.DefaultLimit),
		"limit-key":      fmt.Sprintf("%d characters, remembered for %.0f hours", formsvc.MaxIdempotencyKey, formsvc.IdempotencyTTL.Hours()),
	} {
		if got := text(t, page, id); got != want {
			t.Errorf("#%s is %q, want %q", id, got, want)
		}
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
		fmt.Sprintf("Repeated within %.0f hours", formsvc.IdempotencyTTL.Hours()),
	} {
		if !strings.Contains(prose, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The example problem and delivery on the page have the same fields as real ones.
func TestDocsExamples(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	page := docsPage(t)
	campaign := w.campaign(plainCampaign)
	var shown, real problem
	decode(t, text(t, page, "problem"), &shown)
	a := w.do("POST", campaign+"/responses", `{"user":{},"responses":{}}`).is(422, "validation_failed")
	decode(t, a.body, &real)
	if shown.RequestID = real.RequestID; !reflect.DeepEqual(shown, real) {
		t.Errorf("the page shows %+v, real is %+v", shown, real)
	}

	w.response(campaign)
	var event map[string]any
	decode(t, text(t, page, "payload"), &event)
	if _, err := webhook.ParseEvent([]byte(text(t, page, "payload"))); err != nil {
		t.Error(err)
	}
	items, _ := w.do("GET", "/v1/events", "").is(200, "").at("items").([]any)
	if len(items) != 1 {
		t.Fatalf("%d events", len(items))
	}
	if got, want := shownMembers(event, ""), shownMembers(items[0], ""); !slices.Equal(got, want) {
		t.Errorf("the page shows %v, real is %v", got, want)
	}
}

func decode(t *testing.T, from string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(from), v); err != nil {
		t.Fatalf("%v: %s", err, from)
	}
}

// shownMembers returns the names of all fields but those that users choose.
func shownMembers(v any, at string) []string {
	object, ok := v.(map[string]any)
	if !ok || strings.HasSuffix(at, ".responses") {
		return []string{at}
	}
	var list []string
	for name, member := range object {
		list = append(list, shownMembers(member, at+"."+name)...)
	}
	slices.Sort(list)
	return list
}
