package httpx_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/httpx"
)

func TestOptions(t *testing.T) {
	svc := newWorld(t, nil).svc
	if _, err := httpx.New(nil, nil); err == nil {
		t.Error("no service: no error")
	}
	bad := []httpx.Options{
		{MaxRequests: -1}, {MaxMemory: -1}, {Rate: math.NaN()}, {Rate: 1e9},
	}
	for _, link := range []httpx.Link{{Path: "/x"}, {Title: "X"}, {Title: "X", Path: "x"}, {Title: "X", Path: "//x.example"}, {Title: "X", Path: "javascript:x"}} {
		bad = append(bad, httpx.Options{Links: []httpx.Link{link}})
	}
	for _, base := range []string{"forms.example.com", "/api", "ftp://x", "https://", "https://x?y", "https://x?", "https://x#y", "https://u:p@x", "https://%zz"} {
		bad = append(bad, httpx.Options{BaseURL: base})
		if base != "/api" {
			bad = append(bad, httpx.Options{FormsURL: base})
		}
	}
	for _, o := range bad {
		if _, err := httpx.New(svc, &o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// C8: unclean paths are neither cleaned nor redirected.
func TestUncleanPathsAreNotRedirected(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	response := w.response(campaign)
	id := strings.TrimPrefix(campaign, "/v1/campaigns/")
	for _, path := range []string{
		"//", "/v1", "/v1/", "//v1/campaigns", "/v1//campaigns", "/v1/./campaigns", "/v1/../v1/campaigns", "/v1/campaigns/", campaign + "/",
		campaign + "//responses", campaign + "/./responses", campaign + "/responses/..", campaign + "/responses/../responses", response + "/",
		response + "/x", "/v1/campaigns%2F" + id, "/v1/%63ampaigns", "/v1%2fcampaigns", "/v1/%2e%2e/campaigns", "/v1/%2e/campaigns",
		"/v1/campaigns/%00", "/v1/campaigns/%ff", campaign + "%00", campaign + "%20", strings.ToUpper("/v1/campaigns/" + id), "/V1/campaigns",
		"/v1/campaigns/x", "/v1/campaigns/" + id[1:], "/v1/campaigns/{uuid}", "/v1/campaigns/" + strings.ReplaceAll(id, "-", ""),
		"/v1/campaigns/" + strings.Repeat("a", 8<<10), campaign + "/responses/x", campaign + "/response", "/v1/campaigns/../../etc/passwd",
		"/healthz/", "/campaigns", "/v2/campaigns", "/v1/campaigns;x=1", "/v1/campaigns/é",
	} {
		r := w.request("GET", "/", "")
		u := must(url.Parse("http://example.com" + path))
		r.URL, r.RequestURI = u, path
		w.send(r).is(404, "not_found")
		r.Header.Del("Authorization") // the path is checked before the key
		w.send(r).is(404, "not_found")
	}
	r := w.request("GET", "/", "")
	r.URL = &url.URL{Path: "*"}
	w.send(r).is(404, "not_found")
}

func TestHead(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for _, r := range w.requests(campaign, w.response(campaign)) {
		if r.Method != "GET" {
			continue
		}
		get, head := w.do("GET", r.path, "", header("X-Request-Id", "x")), w.do("HEAD", r.path, "", header("X-Request-Id", "x"))
		if head.is(200, ""); fmt.Sprint(get.header) != fmt.Sprint(head.header) {
			t.Errorf("%s:\n GET %v\nHEAD %v", r.path, get.header, head.header)
		}
	}
	w.do("HEAD", "/v1/campaigns?x=1", "").is(400, "")
}

func TestRequestIDs(t *testing.T) {
	w := newWorld(t, nil)
	for _, sane := range []string{"a", "A-b_c.9", "host/abc-000001", `<"'{!~}>`, strings.Repeat("x", 200)} {
		a := w.do("GET", "/v1/campaigns", "", header("X-Request-Id", sane))
		equal(t, a.header.Get("X-Request-Id"), sane, "%q became %q", sane)
	}
	seen := map[string]bool{}
	for _, values := range [][]string{
		nil, nil, {""}, {strings.Repeat("x", 201)}, {"a b"}, {" a"}, {"a\nb"}, {"a\tb"}, {"é"}, {"a", "a"}, {"a\x7f"}, {"a\x00"},
	} {
		a := w.do("GET", "/v1/nothing", "", header("X-Request-Id", values...)).is(404, "")
		id := a.header.Get("X-Request-Id")
		if len(id) != 26 || seen[id] || slices.Contains(values, id) {
			t.Errorf("%q became %q", values, id)
		}
		seen[id] = true
	}
}

func TestLocation(t *testing.T) {
	w := newWorld(t, nil)
	for uri, want := range map[string]string{
		"/v1/campaigns":                         "/v1/campaigns",
		"/a/b/v1/campaigns":                     "/a/b/v1/campaigns",
		"http://example.com/v1/campaigns":       "/v1/campaigns",
		"//evil.example/v1/campaigns":           "/v1/campaigns",
		"http://example.com//evil/v1/campaigns": "/v1/campaigns",
		"/rewritten":                            "/v1/campaigns",
		"":                                      "/v1/campaigns",
	} {
		r := w.request("POST", "/v1/campaigns", plainCampaign, header("X-Forwarded-Host", "evil"), header("X-Forwarded-Proto", "gopher"))
		r.RequestURI, r.Host = uri, "evil.example"
		a := w.send(r).is(201, "")
		if got := a.header.Get("Location"); got != want+"/"+a.text("uuid") {
			t.Errorf("%s: Location = %s, want %s/…", uri, got, want)
		}
	}
	below := w.request("POST", w.webhook(hookBody("b"))+"/test", "")
	below.RequestURI = "/a/b" + below.URL.Path
	if got := w.send(below).is(201, "").header.Get("Location"); !strings.HasPrefix(got, "/a/b/v1/deliveries/") {
		t.Errorf("Location = %s", got)
	}
	w.serve(&httpx.Options{BaseURL: "https://forms.example.com/api/"})
	a := w.do("POST", "/v1/webhooks", hookBody("a"))
	equal(t, a.header.Get("Location"), "https://forms.example.com/api/v1/webhooks/"+a.text("uuid"), "Location = %s")
	c := w.do("POST", "/v1/campaigns", fullCampaign).is(201, "")
	c.has(`"https://forms.example.com/api/f/`+c.text("form", "token")+`"`, "form", "url")
	for forms, want := range map[string]string{
		"https://example.com/f/": "https://example.com/f/", "http://forms.lan:81": "http://forms.lan:81/", "/f": "HOST/f/", "/": "HOST/", "/a b/f/": "HOST/a%20b/f/",
	} {
		for base, host := range map[string]string{"": "", "https://forms.example.com/api": "https://forms.example.com"} {
			w.serve(&httpx.Options{BaseURL: base, FormsURL: forms})
			want := strings.Replace(want, "HOST", host, 1)
			w.do("GET", "/v1/campaigns/"+c.text("uuid"), "").has(`"`+want+c.text("form", "token")+`"`, "form", "url")
		}
	}
}

// A form's address can be rotated, and is then the campaign's.
func TestRotateForm(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(fullCampaign)
	before := w.do("GET", campaign, "")
	w.do("POST", campaign+"/form/rotate", "", header("If-Match", before.header.Get("Etag"))).is(400, "invalid_header")
	rotated := w.do("POST", campaign+"/form/rotate", "").is(200, "")
	if rotated.text("form", "token") == before.text("form", "token") {
		rotated.errorf("the same token")
	}
	w.do("GET", campaign, "").wantHeader("Etag", rotated.header.Get("Etag")).has(`"`+rotated.text("form", "token")+`"`, "form", "token")
}

// C7: every path refuses other methods than its routes have, before it looks at the key.
func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	allowed, paths := map[string][]string{}, map[string]string{}
	for _, s := range w.requests(w.pair()) {
		allowed[s.Pattern] = append(allowed[s.Pattern], s.Method)
		paths[s.Pattern] = s.path
		if s.Method == http.MethodGet {
			allowed[s.Pattern] = append(allowed[s.Pattern], http.MethodHead)
		}
	}
	for pattern, methods := range allowed {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X"} {
			if slices.Contains(methods, method) {
				continue
			}
			a := w.do(method, paths[pattern], "", header("Authorization"), header("X-HTTP-Method-Override", methods[0])).is(405, "")
			allow := strings.Split(a.header.Get("Allow"), ", ")
			slices.Sort(allow)
			if slices.Sort(methods); !slices.Equal(allow, methods) {
				a.errorf("Allow = %q, want %q", allow, methods)
			}
		}
	}
	w.do("GET", "/v1/campaigns", "", header("X-HTTP-Method-Override", "DELETE")).is(200, "")
}
