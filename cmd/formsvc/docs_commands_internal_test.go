//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// The commands on the documentation page work as shown, apart from the user's own values.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	lookFor(t, "curl")
	s, r := newShell(t).serve(t), receive(t)
	shown := commands(t, s.url)

	one := *s
	one.key = strings.TrimSpace(s.do(t, strings.Fields(shown["make-key"])[1:]...))
	me := objects(t, one.call(t, http.StatusOK, http.MethodGet, "/v1/me", nil))[0]
	if got := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(me["permissions"]), "[]")), ","); !strings.HasSuffix(shown["make-key"], " "+got) {
		t.Errorf("the key may do %s", got)
	}

	var response, file string
	dir := t.TempDir()
	curl := func(id, campaign, status string) map[string]any {
		t.Helper()
		line, ok := strings.CutPrefix(shown[id], "curl ")
		if !ok || !strings.Contains(line, s.url+"/v1/") {
			t.Fatalf("%s: %s", id, shown[id])
		}
		line = strings.ReplaceAll(line, "https://forms.example.com/hooks", r.URL())
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `curl -sS -w '\n%{http_code}' `+line)
		cmd.Env = append(os.Environ(), "FORMSVC_KEY="+s.key, "CAMPAIGN="+campaign, "RESPONSE="+response, "FILE="+file)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		body, code, _ := strings.Cut(string(out), "\n")
		if err != nil || code != status {
			t.Fatalf("%s: %v: %s, want %s", id, err, out, status)
		}
		return append(objects(t, body), nil)[0]
	}
	campaign, _ := curl("curl-campaign", "", "201")["uuid"].(string)
	created := curl("curl-response", campaign, "201")
	equal(t, curl("curl-response", campaign, "201")["uuid"], created["uuid"], "the same call again makes another response: %v")
	list := curl("curl-list", campaign, "200")
	items, _ := list["items"].([]any)
	if first, _ := json.Marshal(items); len(items) != 1 || !strings.Contains(string(first), created["uuid"].(string)) {
		t.Errorf("the list is %v", list)
	}
	for _, id := range []string{"curl-page", "curl-events"} {
		if items, _ := curl(id, campaign, "200")["items"].([]any); len(items) != 1 {
			t.Errorf("%s lists %v", id, items)
		}
	}
	noError(t, os.WriteFile(filepath.Join(dir, "passport.pdf"), []byte("passport"), 0o600))
	response, _ = created["uuid"].(string)
	file, _ = curl("curl-upload", campaign, "201")["uuid"].(string)
	curl("curl-download", campaign, "200")
	if got, err := os.ReadFile(filepath.Join(dir, "copy.pdf")); string(got) != "passport" {
		t.Errorf("downloaded %q: %v", got, err)
	}
	if secret, _ := curl("curl-webhook", campaign, "201")["secret"].(string); secret == "" {
		t.Error("the webhook has no secret")
	}
}

// commands returns the texts of the elements with identifiers on the server's page, with its address as scripts insert it.
func commands(t *testing.T, origin string) map[string]string {
	t.Helper()
	page := must(html.Parse(strings.NewReader(fetchedBy(t, http.DefaultClient, origin+"/docs"))))
	texts := make(map[string]string)
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "id" {
				texts[a.Val] = textOf(n, origin)
			}
		}
	}
	return texts
}

// textOf returns the text of an element.
func textOf(n *html.Node, origin string) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	for _, a := range n.Attr {
		if a.Key == "data-base" {
			return origin
		}
	}
	var b strings.Builder
	for child := range n.ChildNodes() {
		b.WriteString(textOf(child, origin))
	}
	return b.String()
}
