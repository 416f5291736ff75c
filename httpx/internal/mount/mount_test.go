package mount_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/intake"
)

// chi mounts a handler as Mount of chi does, for a path that fits the pattern.
func chi(pattern string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = pattern
		segments := strings.SplitN(r.URL.EscapedPath(), "/", strings.Count(pattern, "/")+2)
		if rest := segments[len(segments)-1]; len(segments) > strings.Count(pattern, "/")+1 && rest != "" {
			r.Pattern += "/*"
			r.SetPathValue("*", rest)
		}
		h.ServeHTTP(w, r)
	})
}

// mux mounts a handler by patterns of http.ServeMux, without StripPrefix.
func mux(h http.Handler, patterns ...string) http.Handler {
	m := http.NewServeMux()
	for _, p := range patterns {
		m.Handle(p, h)
	}
	return m
}

// The API, the forms and the console are right wherever and however they are mounted.
func TestMounts(t *testing.T) {
	host := formsvctest.New(t, nil)
	svc, campaign := host.Service, host.Campaign()
	api, errAPI := httpx.New(svc, nil)
	pages, errPages := console.New(svc, api, nil)
	forms, errForms := intake.New(svc, nil)
	if errAPI != nil || errPages != nil || errForms != nil {
		t.Fatal(errAPI, errPages, errForms)
	}
	for _, x := range []struct {
		name    string
		handler http.Handler
		target  string
		status  int
		says    string // with PREFIX
		pattern string // "": any
	}{
		{"API", api, "/healthz", 200, `"ok"`, "GET /healthz"},
		{"API", api, "/v1/me", 401, "unauthenticated", "GET /v1/me"},
		{"API", api, "/openapi.json", 200, `"url": "PREFIX"`, "GET /openapi.json"},
		{"API", api, "/", 200, `"href":"PREFIX/docs"`, "GET /"},
		{"API", api, "", 200, `"href":"PREFIX/docs"`, "GET /"},
		{"API", api, "/docs/", 308, "", ""},
		{"API", api, "/v1//me", 404, "not_found", ""},
		{"console", pages, "/sign-in", 200, `href="PREFIX/assets/console.css`, "GET /sign-in"},
		{"console", pages, "/", 401, `href="PREFIX/assets/console.css`, "GET /{$}"},
		{"console", pages, "", 401, `href="PREFIX/assets/console.css`, "GET /{$}"},
		{"console", pages, "/nothing", 404, "Page not found", "/"},
		{"console", pages, "/a/../keys", 404, "Page not found", ""},
		{"console", pages, "/keys/", 404, "Page not found", "/"},
		{"forms", forms, "/" + campaign.FormToken, 200, "Test</h1>", "GET /{token}"},
		{"forms", forms, "/" + campaign.FormToken + "/thanks", 200, "Thank you", "GET /{token}/thanks"},
		{"forms", forms, "/assets/form.css", 200, "{", "GET /assets/{name}"},
		{"forms", forms, "/", 404, "Form not found", "/"},
		{"forms", forms, "", 404, "Form not found", "/"},
	} {
		for name, m := range map[string]struct {
			prefix  string
			handler http.Handler
		}{
			"nothing": {"", x.handler}, "strip": {"/a/b", http.StripPrefix("/a/b", x.handler)}, "strip with slash": {"/a/b", http.StripPrefix("/a/b/", x.handler)},
			"mux": {"/a/b", mux(x.handler, "/a/b", "/a/b/")}, "mux with a wildcard": {"/t/1/b", mux(x.handler, "/t/{tenant}/b/")},
			"mux and strip": {"/a/b", mux(http.StripPrefix("/a/b", x.handler), "/a/b", "/a/b/")}, "mux at the root": {"", mux(x.handler, "/")},
			"chi": {"/a/b", chi("/a/b", x.handler)}, "chi and a wildcard": {"/t/1/b", chi("/t/{tenant}/b", x.handler)},
			"chi and strip": {"/a/b", chi("/a/b", http.StripPrefix("/a/b", x.handler))},
		} {
			if x.target == "" && (m.prefix == "" || strings.Contains(name, "with")) || strings.HasPrefix(name, "mux") && strings.Contains(x.target, "/a/..") || x.target == "/v1//me" && strings.HasPrefix(name, "mux") {
				continue // no such request gets there
			}
			r := httptest.NewRequest(http.MethodGet, m.prefix+x.target, nil)
			r.Header.Set("X-Request-Id", "vm/767DCrICFE-000001")
			w := httptest.NewRecorder()
			m.handler.ServeHTTP(w, r)
			if w.Header().Get("X-Request-Id") != r.Header.Get("X-Request-Id") && !strings.HasPrefix(x.target, "/assets/") {
				t.Errorf("%s with %s: %s has the ID %s", x.name, name, x.target, w.Header().Get("X-Request-Id"))
			}
			if r.Pattern != x.pattern && x.pattern != "" && !strings.Contains(name, "strip") { // StripPrefix copies the request
				t.Errorf("%s with %s: the pattern of %s is %q", x.name, name, x.target, r.Pattern)
			}
			says := strings.ReplaceAll(x.says, `"PREFIX"`, `"`+m.prefix+`"`)
			if x.target == "/openapi.json" && m.prefix == "" {
				says = `"url": "/"`
			}
			if says = strings.ReplaceAll(says, "PREFIX", m.prefix); w.Code != x.status || !strings.Contains(w.Body.String(), says) {
				t.Errorf("%s with %s: %q gets %d without %q: %.300s", x.name, name, m.prefix+x.target, w.Code, says, w.Body)
			}
		}
	}
	for _, id := range []string{"", "a b", "é", strings.Repeat("x", 201)} {
		for name, h := range map[string]http.Handler{"API": api, "console": pages, "forms": forms} {
			r, w := httptest.NewRequest(http.MethodGet, "/nothing", nil), httptest.NewRecorder()
			r.Header.Set("X-Request-Id", id)
			if h.ServeHTTP(w, r); len(w.Header().Get("X-Request-Id")) != 26 {
				t.Errorf("%s: %q becomes %q", name, id, w.Header().Get("X-Request-Id"))
			}
		}
	}
	// Routes of the API may be patterns of their own.
	for _, target := range []string{"/v1/me", "/healthz", "/docs"} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		w := httptest.NewRecorder()
		if mux(api, "/v1/", "/healthz", "/docs").ServeHTTP(w, r); w.Code == 404 || r.Pattern == "/" {
			t.Errorf("%s gets %d of %s", target, w.Code, r.Pattern)
		}
	}
}
