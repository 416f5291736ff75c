//go:build long

package main_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// chromium returns the path of the browser.
func chromium(t testing.TB) string {
	t.Helper()
	return lookFor(t, "chromium", "chromium-browser", "google-chrome")
}

// A hostile is a file whose script a browser would run if it rendered the file. Each script requests /beacon?NAME.
type hostile struct {
	name, contentType, content string
}

func hostiles() []hostile {
	const beacon = `fetch("/beacon?NAME");if(document.cookie)fetch("/beacon?cookie-NAME")`
	script := func(open string) string { return open + beacon + `</script>` }
	list := []hostile{
		{"page.html", "text/html", script("<!doctype html><script>")},
		{"page.xhtml", "application/xhtml+xml", `<html xmlns="http://www.w3.org/1999/xhtml"><body>` + script("<script>") + `</body></html>`},
		{"image.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg">` + script("<script>") + `</svg>`},
		{
			"sheet.xml", "text/xml",
			`<?xml version="1.0"?><a:script xmlns:a="http://www.w3.org/1999/xhtml">` + beacon + `</a:script>`,
		},
		{"code.js", "text/javascript", beacon},
		{"claims.png", "image/png", script("<!doctype html><script>")},
		{"plain.txt", "text/plain", script("<!doctype html><script>")},
		{"none.bin", "", script("<!doctype html><script>")},
		{"polyglot.gif", "image/gif", "GIF89a=1;" + beacon},
		{"data.json", "application/json", beacon},
	}
	for i := range list {
		list[i].content = strings.ReplaceAll(list[i].content, "NAME", list[i].name)
	}
	return list
}

// A site is one origin for a browser: the API with the key of a signed-in user, as behind the login of a host application,
// and pages that embed files.
type site struct {
	*httptest.Server

	mu      sync.Mutex
	beacons []string
}

func newSite(t testing.TB, w *filing, page string, unsafe map[string]hostile) *site {
	t.Helper()
	target, err := url.Parse(w.client.url)
	if err != nil {
		t.Fatal(err)
	}
	api := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+w.key)
		},
		ErrorLog: log.New(io.Discard, "", 0), // browsers cancel many requests
	}
	s := new(site)
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.HandleFunc("/beacon", func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.beacons = append(s.beacons, r.URL.RawQuery)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret", Path: "/"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, page)
	})
	mux.HandleFunc("/unsafe/{name}", func(w http.ResponseWriter, r *http.Request) {
		h := unsafe[r.PathValue("name")]
		w.Header().Set("Content-Type", h.contentType)
		_, _ = fmt.Fprint(w, h.content)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// ran returns the names of the scripts that ran, sorted.
func (s *site) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.beacons)
	slices.Sort(list)
	return slices.Compact(list)
}

// embedding returns a page that embeds each address in every possible way. When everything has loaded, it navigates to each
// address, and then reports that it is done, if it still runs.
func embedding(addresses []string) string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>page</title>")
	for _, a := range addresses {
		fmt.Fprintf(&b, `<iframe src="%[1]s"></iframe><object data="%[1]s"></object><embed src="%[1]s"><img src="%[1]s">`+
			`<script src="%[1]s"></script><script type="module" src="%[1]s"></script><link rel="stylesheet" href="%[1]s">`, a)
	}
	b.WriteString("<script>onload = () => {")
	for i, a := range addresses {
		fmt.Fprintf(&b, `setTimeout(() => { location.href = %q }, %d);`, a, 200*i)
	}
	fmt.Fprintf(&b, `setTimeout(() => fetch("/beacon?%s"), %d)}</script>`, pageDone, 200*len(addresses)+1000)
	return b.String()
}

const pageDone = "done"

// visit opens an address in a new browser until done.
func visit(t testing.TB, browser, address string, done func() bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), address)
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with the processes that it started
		_ = cmd.Wait()                                      // returns the error of the kill
	}()
	eventually(t, "the browser is done", done)
}

// No uploaded file runs scripts on the API's origin, whatever its type and however a page embeds it or a user opens it.
func TestUploadedFilesNeverRunScripts(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	w := &filing{dsn: databases()[0].dsn(t), place: places()["disk"](t)}
	w.serve(t)
	unsafe := map[string]hostile{}
	var files, controls []string
	for _, h := range hostiles() {
		unsafe[h.name] = h
		controls = append(controls, "/unsafe/"+h.name)
		files = append(files, "/v1/files/"+w.uploadAs(t, h).UUID)
	}

	// Without our headers the same files do run, so the test can detect it.
	s := newSite(t, w, embedding(controls), unsafe)
	run := []string{"page.html", "cookie-page.html", "page.xhtml", "image.svg", "sheet.xml", "code.js"}
	visit(t, browser, s.URL+"/page", func() bool {
		ran := s.ran()
		return !slices.ContainsFunc(run, func(name string) bool { return !slices.Contains(ran, name) })
	})

	s = newSite(t, w, embedding(files), unsafe)
	visit(t, browser, s.URL+"/page", func() bool { return len(s.ran()) > 0 })
	if ran := s.ran(); !slices.Equal(ran, []string{pageDone}) {
		t.Errorf("these ran on our origin: %q", ran)
	}
}

// uploadAs uploads a file of a type.
func (w *filing) uploadAs(t testing.TB, h hostile) fileRecord {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.client.url+w.response+"/files", strings.NewReader(h.content))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Disposition", `attachment; filename="`+h.name+`"`)
	if h.contentType != "" {
		req.Header.Set("Content-Type", h.contentType)
	}
	a, err := w.answered(req)
	return w.taken(t, a, err, []byte(h.content))
}
