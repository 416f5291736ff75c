//go:build long

package main_test

import (
	"bytes"
	"html"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Downloads from the settings pages are byte for byte those of the API: uploaded files and exports.
func TestSettingsDownloads(t *testing.T) {
	onEachPlace(t, func(t *testing.T, w *filing) {
		w.serve(t)
		files := map[string][]byte{
			"Übersicht der 自転車 🚲.bin": bytesOf(1, 5_000_001), `a "quoted" & <b>file</b>.txt`: []byte("<script>alert(1)</script>"), "empty": {},
		}
		records := map[string]fileRecord{}
		for name, content := range files {
			records[name] = w.form(t, name, "documents", content)
		}
		campaign, _, _ := strings.Cut(strings.TrimPrefix(w.response, "/v1/campaigns/"), "/")
		for _, marker := range []string{"é, \"ü\"\r\n🚲", "=1+1", ""} {
			w.submit(t, campaign, marker)
		}
		v := newVisitor(t, w.server.url)
		if status := v.signIn(w.manage(t, "settings-link", "--base-url", w.server.url).out); status != http.StatusOK {
			t.Fatalf("sign in: %d %s", status, v.body)
		}

		v.get(strings.TrimPrefix(w.response, "/v1"))
		links := v.links()
		for name, content := range files {
			record := records[name]
			disposition := v.saves(t, links["/settings/files/"+record.UUID], content, w.want(t, http.StatusOK, http.MethodGet, "/v1/files/"+record.UUID, nil, nil))
			if shown := links["/settings/files/"+record.UUID].text; shown != record.Name {
				t.Errorf("the page calls the file %q, want %q", shown, record.Name)
			}
			if _, parameters, err := mime.ParseMediaType(disposition); err != nil || parameters["filename"] != record.Name {
				t.Errorf("%q is saved by %q: %v", record.Name, disposition, err)
			}
		}
		if name := "Übersicht der 自転車 🚲.bin"; records[name].Name != name {
			t.Errorf("the file is called %q, want %q", records[name].Name, name)
		}

		v.get("/campaigns/" + campaign)
		links = v.links()
		for _, kind := range []string{".csv", ".ndjson"} {
			api := w.want(t, http.StatusOK, http.MethodGet, responsesPath(campaign)+kind, nil, nil)
			if bytes.Count(api.body, []byte("\n")) < 4 {
				t.Errorf("the export%s has %s", kind, api.body)
			}
			v.saves(t, links["/settings/campaigns/"+campaign+"/export/responses"+kind], api.body, api)
		}
	})
}

// An anchor is the target and the text of a link.
type anchor struct{ path, text string }

// links returns the links of the last page, by target.
func (v *visitor) links() map[string]anchor {
	list := map[string]anchor{}
	for _, m := range regexp.MustCompile(`<a href="([^"]*)"[^>]*>([^<]*)</a>`).FindAllStringSubmatch(v.body, -1) {
		a := anchor{html.UnescapeString(m[1]), html.UnescapeString(m[2])}
		list[a.path] = a
	}
	return list
}

// saves follows a link to a download. It checks the content and that the headers are the API's, and returns the file name.
func (v *visitor) saves(t testing.TB, link anchor, content []byte, api answer) (disposition string) {
	t.Helper()
	if link.path == "" {
		t.Fatalf("no such link: %s", v.body)
	}
	a, err := v.client.Get(v.site + link.path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK || !bytes.Equal(got, content) || !bytes.Equal(got, api.body) {
		t.Errorf("%s: status %d, %d bytes, want %d, %v", link.path, a.StatusCode, len(got), len(content), err)
	}
	for _, name := range []string{"Content-Disposition", "Content-Type", "X-Content-Type-Options"} {
		if values := a.Header.Values(name); len(values) != 1 || !slices.Equal(values, api.header.Values(name)) {
			t.Errorf("%s: %s is %q, the API's %q", link.path, name, values, api.header.Values(name))
		}
	}
	disposition = a.Header.Get("Content-Disposition")
	if !strings.HasPrefix(disposition, "attachment;") {
		t.Errorf("%s: is shown and not saved: %q", link.path, disposition)
	}
	return disposition
}
