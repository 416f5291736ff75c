//go:build long

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// checkout copies a folder and the OpenAPI document to their places in an empty checkout, and installs what the folder needs from npm.
func (s *service) checkout(t *testing.T, folder, npm string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	document := s.call(t, http.StatusOK, http.MethodGet, "/openapi.json", nil)
	if err := errors.Join(os.CopyFS(filepath.Join(dir, folder), os.DirFS("../../"+folder)), os.Mkdir(filepath.Join(dir, "httpx"), 0o750),
		os.WriteFile(filepath.Join(dir, "httpx/openapi.json"), []byte(document), 0o600)); err != nil {
		t.Fatal(err)
	}
	tool(t, filepath.Join(dir, npm), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	return dir
}

// Redocly recommends nothing for the OpenAPI document, and the client that openapi-ts generates from it compiles.
// TestGeneratedClient has the generators for Go, and TestClientsInOtherLanguages has openapi-typescript.
func TestOpenAPIDocumentInOtherTools(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newShell(t).serve(t).checkout(t, ".ci/judges", ".ci/judges"), ".ci/judges")
	const document = "../../httpx/openapi.json"
	tool(t, dir, "npx", "redocly", "lint", "--config", "redocly.yaml", document)
	tool(t, dir, "npx", "openapi-ts", "--input", document, "--output", "client")
	tool(t, dir, "npx", "tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "client/index.ts")
}

// The clients of examples/clients take effect once through a proxy that refuses or cuts every second attempt, except for damaged files,
// which they don't ask for again.
func TestClientsInOtherLanguages(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	dir := filepath.Join(s.checkout(t, "examples/clients", "examples/clients/typescript"), "examples/clients")
	typescript := filepath.Join(dir, "typescript")
	vectors, err := filepath.Abs("../../webhook/webhooktest/vectors.json")
	noError(t, err)
	tool(t, typescript, "npm", "run", "build")
	tool(t, typescript, "node", "vectors.js", vectors)
	f := new(faulty)
	front := f.serve(t, s)
	for _, c := range []struct{ program, folder, example, flag, damaged string }{
		{"node", typescript, "example.js", "-e", `import("./formsvc.js").then(async ({ connect }) => {
			const [, url, key] = process.argv, file_uuid = "01a1fd3a-3683-7000-8000-00000000000c";
			const { error } = await connect(url, key).GET("/v1/files/{file_uuid}", { params: { path: { file_uuid } } });
			console.log(error.code); })`},
		{"python3", filepath.Join(dir, "python"), "example.py", "-c",
			"import sys, formsvc\ntry: formsvc.Client(*sys.argv[1:]).request('GET', '/v1/files/x')\nexcept formsvc.Problem as p: print(p.code)"},
	} {
		f.count.Store(0)
		prints := func(want string, requests int, args ...string) {
			before := int(f.count.Load())
			cmd := exec.CommandContext(t.Context(), lookFor(t, c.program), append(args, front.URL, s.key)...)
			cmd.Dir = c.folder
			got, err := cmd.CombinedOutput()
			if n := int(f.count.Load()) - before; err != nil || string(got) != want || n != requests {
				t.Errorf("%s makes %d requests and prints %q, %v, want %d and %q", c.program, n, got, err, requests, want)
			}
		}
		prints("refused: /user is required\nrefused: /responses/motivation is required\nanswer: To see\nanswer: To teach\nanswer: To learn\n", 20, c.example)
		prints("blob_corrupt\n", 1, c.flag, c.damaged)
	}
	equal(t, strings.Count(s.call(t, http.StatusOK, http.MethodGet, "/v1/campaigns", nil), `"responseCount":3,`), 2, "%d campaigns with 3 responses")
	equal(t, strings.Count(s.call(t, http.StatusOK, http.MethodGet, "/v1/events", nil), `"event":"file.uploaded"`), 6, "%d files")
	t.Run("page", func(t *testing.T) { showsPage(t, s, typescript) })
}

// showsPage fills in the page of another site. It shows errors at their fields, keeps what was typed, and sends it once although the
// reply was lost.
func showsPage(t *testing.T, s *service, dir string) {
	browser, site, f := launchBrowser(t), httptest.NewServer(http.FileServer(http.Dir(dir))), new(faulty)
	t.Cleanup(site.Close)
	f.calm.Store(true)
	campaign, path := s.published(t, map[string]any{"allowedOrigins": []string{site.URL}}, map[string]any{"name": "message", "required": true},
		map[string]any{"name": "topics", "type": "choice", "options": []string{"grants", "travel"}, "multiple": true})
	index := filepath.Join(dir, "page/index.html")
	text, err := os.ReadFile(index)
	noError(t, err)
	noError(t, os.WriteFile(index, []byte(strings.Replace(string(text), "https://forms.example.com/f/TOKEN", f.serve(t, s).URL+path, 1)), 0o600))
	v := &person{tab: browser.open(t, site.URL, "/page/", "light", 0), service: s}
	v.sees("Contact us")
	v.types("[name=email]", "ada@example.com")
	v.do(chromedp.Click(chromedp.CSS("[value=travel]")))
	v.clicks("button", "Send")
	v.until(`document.activeElement.name === "message" && document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent === " is required"`)
	v.types("[name=message]", "Hello")
	f.down.Store(true)
	before := f.count.Load()
	v.clicks("button", "Send")
	until(t, "the page tries again", func() bool { return f.count.Load() > before+2 })
	v.until(`document.querySelector("[name=message]").value === "Hello"`)
	f.down.Store(false)
	v.says("Sent. Your reference is")
	if got, want := s.answers(t, campaign), `[{"Responses":{"message":{"value":["Hello"]},"topics":{"value":["travel"]}}}]`; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

// faults are statuses of a proxy. 0 cuts the connection before the request arrives, 1 cuts its reply.
var faults = []int{http.StatusServiceUnavailable, 0, http.StatusTooManyRequests, 1, http.StatusConflict, http.StatusBadGateway, 1, http.StatusGatewayTimeout, http.StatusRequestTimeout}

// A faulty is a proxy with one of faults on every second request, which loses every reply while it is down.
type faulty struct {
	count      atomic.Int64
	calm, down atomic.Bool
}

func (f *faulty) serve(t *testing.T, s *service) *httptest.Server {
	t.Helper()
	to, err := url.Parse(s.url)
	noError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(f.count.Add(1))
		fault := faults[n/2%len(faults)]
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/files/"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(`{"code":"blob_corrupt"}`))
		case f.down.Load(), fault == 1 && n%2 == 1 && !f.calm.Load():
			reply := httptest.NewRecorder()
			proxy.ServeHTTP(reply, r)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(reply.Body.Len()))
			_, _ = w.Write(reply.Body.Bytes()[:reply.Body.Len()/2])
			panic(http.ErrAbortHandler)
		case f.calm.Load(), n%2 == 0:
			proxy.ServeHTTP(w, r)
		case fault == 0:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(fault)
			_, _ = w.Write([]byte(`{"code":"idempotency_in_flight"}`))
		}
	}))
	t.Cleanup(front.Close)
	return front
}
