//go:build long

package settings_test

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// Under a login of the host application, wherever that mounts pages and API, keys created on the pages work, and so do
// the commands that the pages show.
func TestShownCommandsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: no curl here")
	}
	for _, where := range []struct{ name, prefix, pages, api, say string }{
		{"pages beside the API", "", "/account/settings", "/forms", "/forms"},
		{"pages below the API", "", "/forms/settings", "/forms", "/forms/"},
		{"API at the root", "", "/settings", "", "/"},
		{"both below a prefix", "/app", "/settings", "/forms", "/app/forms"},
		{"another host", "", "/settings", "/forms", "http://HOST/forms"},
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
			create := w.get("/").is(200).pre("Create a campaign")
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
