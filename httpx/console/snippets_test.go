//go:build long

package console_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// receivers has the code around the snippets: it passes a body and a signature, and exits with 0 if the snippet accepts
// them and with 1 if not.
var receivers = map[string]struct {
	run                         []string
	file, before, indent, after string
}{
	"Go": {[]string{"go", "run"}, "main.go", `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/hex"; "net/http"; "net/http/httptest"; "os")
func main() {
	body := []byte(os.Getenv("BODY"))
	r := httptest.NewRequest("POST", "/", nil)
	if s := os.Getenv("SIGNATURE"); s != "" { r.Header.Set("x-service-signature", s) }
	w := httptest.NewRecorder()
	receive(w, r, body)
	if w.Code != 200 { os.Exit(1) }
}
func receive(w http.ResponseWriter, r *http.Request, body []byte) {
`, "", "\n}\n"},
	"Node": {[]string{"node"}, "receiver.cjs", `const crypto = require("node:crypto");
const body = Buffer.from(process.env.BODY), request = { headers: {} };
if (process.env.SIGNATURE) request.headers["x-service-signature"] = process.env.SIGNATURE;
const response = { writeHead: (status) => { process.exitCode = 1; return { end: () => {} }; } };
(() => {
`, "", "\n})();\n"},
	"Python": {[]string{"python3"}, "receiver.py", `import hashlib, hmac, os, sys
body = os.environb[b"BODY"]
headers = {"x-service-signature": os.environ["SIGNATURE"]} if os.environ.get("SIGNATURE") else {}
def receive():
    `, "    ", "\nsys.exit(1 if receive() == 401 else 0)\n"},
}

// The snippets on the pages, put into receivers, accept signed bodies and nothing else.
func TestSnippets(t *testing.T) {
	w := newSignedIn(t)
	page := w.submit(w.get("/webhooks/new"), "/webhooks", url.Values{"url": {"https://example.com/"}}).is(200)
	const secret, body = "whsec_5f1c0b9e4d7a42d3-ü", `{"event":"response.created","note":"Übermut"}`
	good := webhook.Sign(secret, []byte(body))
	for name, r := range receivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(r.run[0]); err != nil {
				t.Skipf("SKIPPED: no %s here", r.run[0])
			}
			file := filepath.Join(t.TempDir(), r.file)
			code := r.before + strings.ReplaceAll(page.pre("Verification in "+name), "\n", "\n"+r.indent) + r.after
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, row := range []struct {
				what, body, signature string
				authentic             bool
			}{
				{"authentic", body, good, true}, {"changed", body + " ", good, false}, {"unsigned", body, "", false},
				{"upper case", body, strings.ToUpper(good), false}, {"cut", body, good[:63], false}, {"not ASCII", body, strings.Repeat("é", 32), false},
			} {
				cmd := exec.CommandContext(t.Context(), r.run[0], append(slices.Clone(r.run[1:]), file)...)
				cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "BODY="+row.body, "SIGNATURE="+row.signature)
				if out, err := cmd.CombinedOutput(); (err == nil) != row.authentic || err != nil && cmd.ProcessState.ExitCode() != 1 {
					t.Errorf("%s: %v: %s", row.what, err, out)
				}
			}
		})
	}
}

// pre returns the text of the block with that label.
func (a *answer) pre(label string) string {
	a.w.t.Helper()
	for n := range a.page.Descendants() {
		if n.Data == "pre" && attribute(n, "aria-label") == label {
			return textOf(n)
		}
	}
	a.w.t.Fatalf("%s has no block %q", a.what, label)
	return ""
}

// Under a login of the host application, wherever that mounts pages and API, keys created on the pages work, and so do
// the commands that the pages show.
func TestShownCommandsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: no curl here")
	}
	for _, where := range []struct{ name, prefix, pages, api, say string }{
		{"pages beside the API", "", "/account/console", "/forms", "/forms"},
		{"pages below the API", "", "/forms/console", "/forms", "/forms/"},
		{"API at the root", "", "/console", "", "/"},
		{"both below a prefix", "/app", "/console", "/forms", "/app/forms"},
		{"another host", "", "/console", "/forms", "http://HOST/forms"},
	} {
		t.Run(where.name, func(t *testing.T) {
			w := newWorld(t, nil)
			host := w.embed(where.prefix, where.pages, where.api, where.say)
			run := func(key, command string) string {
				t.Helper()
				command = strings.Replace(command, "curl ", "curl -sS --fail-with-body ", 1)
				cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
				cmd.Env = append(cmd.Environ(), "FORMSVC_KEY="+key)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v: %s", command, err, out)
				}
				return string(out)
			}
			create := w.get("/campaigns").is(200).pre("Create a campaign")
			fields := url.Values{"name": {"website"}}
			for _, p := range formsvc.AllPermissions() {
				fields.Add("permissions", string(p))
			}
			made := w.submit(w.get("/keys"), "/keys", fields).is(200)
			key := made.secret()
			if out := run("", made.pre("A call with the key")); !strings.Contains(out, `"items":[]`) {
				t.Errorf("the call with the new key: %s", out)
			}
			run(key, w.get("/campaigns").pre("Create a campaign"))
			run(key, create)
			list, err := w.svc.Campaigns.List(t.Context(), formsvc.CampaignQuery{AccountID: w.account.ID})
			if err != nil || len(list.Items) != 2 {
				t.Fatalf("%d campaigns, %v", len(list.Items), err)
			}
			submit := w.get("/campaigns/" + string(list.Items[0].ID)).is(200).pre("Submit a response")
			if out := run(key, submit); !strings.Contains(out, "ada@example.com") {
				t.Errorf("a response: %s", out)
			}
			if host != "" && !strings.Contains(submit, "http://"+host+"/forms/v1/") {
				t.Errorf("the API is at %s: %s", host, submit)
			}
		})
	}
}
