package httpx_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

func TestRouteTable(t *testing.T) {
	names := map[string]bool{}
	for _, r := range httpx.Routes() {
		if names[r.Name] || r.Name == "" || r.Method == "" || !strings.HasPrefix(r.Pattern, "/") || r.Method == http.MethodHead {
			t.Errorf("%+v", r)
		}
		names[r.Name] = true
		if r.Permission != "" && !slices.Contains(formsvc.AllPermissions(), r.Permission) {
			t.Errorf("%s: unknown permission %s", r.Name, r.Permission)
		}
		if (r.Permission == "") != (r.Public || r.Name == "getMe") {
			t.Errorf("%s: permission %q", r.Name, r.Permission)
		}
	}
}

func TestOptions(t *testing.T) {
	svc := newWorld(t, openMemory(t), nil).svc
	if _, err := httpx.New(nil, nil); err == nil {
		t.Error("no service: no error")
	}
	if _, err := httpx.New(svc, nil); err != nil {
		t.Error(err)
	}
	for _, negative := range []httpx.Options{
		{MaxBody: -1}, {MaxTransfers: -1}, {MaxRequests: -1}, {MaxWaiting: -1}, {MaxWait: -1}, {MaxBodies: -1},
	} {
		if _, err := httpx.New(svc, &negative); err == nil {
			t.Errorf("%+v: no error", negative)
		}
	}
	for _, link := range []httpx.Link{{Path: "/x"}, {Title: "X"}, {Title: "X", Path: "x"}, {Title: "X", Path: "//x.example"}, {Title: "X", Path: "javascript:x"}} {
		if _, err := httpx.New(svc, &httpx.Options{Links: []httpx.Link{link}}); err == nil {
			t.Errorf("%+v: no error", link)
		}
	}
	for _, base := range []string{
		"forms.example.com", "/api", "ftp://x", "https://", "https://x?y", "https://x?", "https://x#y", "https://u:p@x", "https://%zz",
	} {
		if _, err := httpx.New(svc, &httpx.Options{BaseURL: base}); err == nil {
			t.Errorf("BaseURL %s: no error", base)
		}
	}
}

// C8: unclean paths are neither cleaned nor redirected.
func TestUncleanPathsAreNotRedirected(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
			"/healthz/", "/v1/me/", "/v1/campaigns/" + url.PathEscape("'; DROP TABLE campaigns; --"), "/v1/campaigns;x=1", "/v1/campaigns/é",
		} {
			r := w.request("GET", "/", "")
			u, err := url.Parse("http://example.com" + path)
			if err != nil {
				t.Fatal(err)
			}
			r.URL, r.RequestURI = u, path
			w.send(r).is(404, "not_found")
			r.Header.Del("Authorization") // the path is checked before the key
			w.send(r).is(404, "not_found")
		}
		r := w.request("GET", "/", "")
		r.URL = &url.URL{Path: "*"}
		w.send(r).is(404, "not_found")
	})
}

// C7: methods.
func TestMethods(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		for path, allow := range map[string]string{
			"/v1/campaigns": "GET, HEAD, POST", campaign: "GET, HEAD, PUT", campaign + "/responses": "GET, HEAD, POST",
			response: "GET, HEAD, PATCH, DELETE", "/v1/me": "GET, HEAD", "/": "GET, HEAD", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD",
		} {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X"} {
				if slices.Contains(strings.Split(allow, ", "), method) {
					continue
				}
				a := w.do(method, path, "", func(r *http.Request) { r.Header.Del("Authorization") }).is(405, "method_not_allowed")
				if got := a.header.Get("Allow"); got != allow {
					a.errorf("Allow = %q, want %q", got, allow)
				}
			}
		}
		w.do("POST", campaign, "", header("X-HTTP-Method-Override", "PUT")).is(405, "method_not_allowed")
		w.do("GET", "/v1/campaigns", "", header("X-HTTP-Method-Override", "DELETE")).is(200, "")
	})
}

func TestHead(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
		w.do("HEAD", "/v1/nothing", "").is(404, "")
		w.do("HEAD", "/v1/campaigns", "", func(r *http.Request) { r.Header.Del("Authorization") }).is(401, "")
	})
}

func TestRequestIDs(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, sane := range []string{"a", "A-b_c.9", strings.Repeat("x", 128)} {
			a := w.do("GET", "/v1/campaigns", "", header("X-Request-Id", sane))
			if got := a.header.Get("X-Request-Id"); got != sane {
				t.Errorf("%q became %q", sane, got)
			}
		}
		seen := map[string]bool{}
		for _, values := range [][]string{
			nil, nil, {""}, {strings.Repeat("x", 129)}, {"a b"}, {"a\nb"}, {"<script>"}, {"é"}, {"a", "a"}, {`"`}, {"a/b"}, {"a\x00"},
		} {
			a := w.do("GET", "/v1/nothing", "", header("X-Request-Id", values...)).is(404, "")
			id := a.header.Get("X-Request-Id")
			if len(id) != 32 || seen[id] || slices.Contains(values, id) {
				t.Errorf("%q became %q", values, id)
			}
			seen[id] = true
		}
	})
}

func TestMountedUnderAPrefix(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		bare := w.api
		mux := http.NewServeMux()
		mux.Handle("/forms/api/", http.StripPrefix("/forms/api", bare))
		w.api = mux
		a := w.do("POST", "/forms/api/v1/campaigns", plainCampaign).is(201, "")
		location := a.header.Get("Location")
		if want := "/forms/api/v1/campaigns/" + a.text("uuid"); location != want {
			t.Errorf("Location = %s, want %s", location, want)
		}
		w.do("GET", location, "").is(200, "").has(`"Survey"`, "title")
		a = w.do("POST", location+"/responses", plainResponse).is(201, "")
		w.do("GET", a.header.Get("Location"), "").is(200, "")
		w.do("GET", "/forms/api/healthz", "").is(200, "")
		w.do("GET", "/forms/api/campaigns", "").is(404, "not_found")
	})
}

func TestLocation(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for uri, want := range map[string]string{
			"/v1/campaigns":                         "/v1/campaigns",
			"/v1/campaigns?":                        "/v1/campaigns",
			"/a/b/v1/campaigns":                     "/a/b/v1/campaigns",
			"http://example.com/v1/campaigns":       "/v1/campaigns",
			"http://example.com/x/v1/campaigns":     "/x/v1/campaigns",
			"//evil.example/v1/campaigns":           "/v1/campaigns",
			"http://example.com//evil/v1/campaigns": "/v1/campaigns",
			"/rewritten":                            "/v1/campaigns",
			"":                                      "/v1/campaigns",
			"*":                                     "/v1/campaigns",
		} {
			r := w.request("POST", "/v1/campaigns", plainCampaign, header("X-Forwarded-Host", "evil"), header("X-Forwarded-Proto", "gopher"))
			r.RequestURI, r.Host = uri, "evil.example"
			a := w.send(r).is(201, "")
			if got := a.header.Get("Location"); got != want+"/"+a.text("uuid") {
				t.Errorf("%s: Location = %s, want %s/…", uri, got, want)
			}
		}
		for _, base := range []string{"https://forms.example.com/api", "https://forms.example.com/api/"} {
			w.serve(&httpx.Options{BaseURL: base})
			a := w.do("POST", "/v1/campaigns", plainCampaign).is(201, "")
			if got, want := a.header.Get("Location"), "https://forms.example.com/api/v1/campaigns/"+a.text("uuid"); got != want {
				t.Errorf("Location = %s, want %s", got, want)
			}
		}
	})
}

// The request's Pattern is that of the route, as with http.ServeMux, also if the request is refused. Without a route it
// stays unset.
func TestPattern(t *testing.T) {
	svc := newWorld(t, openMemory(t), nil).svc
	api, err := httpx.New(svc, nil)
	if err != nil {
		t.Fatal(err)
	}
	pattern := func(method, path string) string {
		r := httptest.NewRequest(method, path, nil)
		r.Pattern = "outer"
		api.ServeHTTP(httptest.NewRecorder(), r)
		return r.Pattern
	}
	identifier := regexp.MustCompile(`\{[a-z_]*uuid\}`)
	for _, route := range httpx.Routes() {
		path := identifier.ReplaceAllString(route.Pattern, string(formsvc.FloorID(time.Now())))
		if got, want := pattern(route.Method, path), route.Method+" "+route.Pattern; got != want {
			t.Errorf("%s %s: Pattern = %q, want %q", route.Method, path, got, want)
		}
	}
	for want, asked := range map[string][2]string{
		"GET /v1/me": {"HEAD", "/v1/me"}, "outer": {"GET", "/v1/nothing"},
	} {
		if got := pattern(asked[0], asked[1]); got != want {
			t.Errorf("%v: Pattern = %q, want %q", asked, got, want)
		}
	}
	if got := pattern("DELETE", "/v1/me"); got != "outer" {
		t.Errorf("a method that the path doesn't take: Pattern = %q", got)
	}
}
