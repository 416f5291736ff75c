//go:build long

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command writes the same export as the API, with the same filters, to standard output or to a file. Only its owner can
// read the file, and it is removed on failure.
func TestExportCommand(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "exported")
		var ids []string
		for range 20 {
			r := c.submit(t, campaign, `a "marker", =1`)
			ids = append(ids, r.UUID)
		}
		c.want(t, http.StatusOK, http.MethodPatch, responsePath(campaign, ids[3]), map[string]string{"status": "completed"}, nil)
		c.want(t, http.StatusOK, http.MethodPatch, responsePath(campaign, ids[4]), map[string]string{"status": "à lire, vite"}, nil)
		c.want(t, http.StatusOK, http.MethodPatch, responsePath(campaign, ids[5]), map[string]string{"status": "Lu,vu"}, nil)
		for flags, query := range map[string]string{
			`--status Lu\,vu,completed`:            "order=asc&status=completed&status=Lu%2Cvu",
			"":                                     "order=asc",
			"--order desc --email ada@example.com": "order=desc&email=ada@example.com",
			"--status completed,other":             "order=asc&status=completed&status=other",
			"--after " + ids[9]:                    "order=asc&cursor=" + ids[9],
			"--created-before 1h":                  "order=asc&createdBefore=2000-01-01T00:00:00Z",
			"--updated-after 1h --email none@x.de": "order=asc&email=none@x.de",
		} {
			for _, format := range []string{"csv", "ndjson"} {
				args := append([]string{"export", "--campaign", campaign, "--format", format}, strings.Fields(flags)...)
				want := c.want(t, http.StatusOK, http.MethodGet, responsesPath(campaign)+"."+format+"?"+query, nil, nil)
				if got := manage(t, dsn, args...); got != string(want.body) {
					t.Errorf("%s as %s: %d bytes, the API gives %d", flags, format, len(got), len(want.body))
				}
			}
		}

		file := filepath.Join(t.TempDir(), "out.csv")
		manage(t, dsn, "export", "--campaign", campaign, "--out", file)
		text, err := os.ReadFile(file)
		if info, statErr := os.Stat(file); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || strings.Count(string(text), "\r\n") != 21 {
			t.Errorf("the file: %v, %v, %v, %d records", err, statErr, info.Mode(), strings.Count(string(text), "\r\n"))
		}
		for args, want := range map[string]string{
			"export --campaign " + campaign + " --out " + file:                           "already",
			"export --campaign x":                                                        "--campaign",
			"export --campaign " + campaign + " --after x":                               "--after",
			"export --campaign " + campaign + " --created-after yesterday":               "--created-after",
			"export --campaign " + campaign + " --format xml":                            "--format",
			"export --campaign 01890a5d-ac96-774b-bcce-b302099a8057 --out " + file + "2": "no campaign",
		} {
			if r := attempt(t, dsn, strings.Fields(args)...); r.status == 0 || !strings.Contains(r.err, want) || r.out != "" {
				t.Errorf("%s: %+v, want %q", args, r, want)
			}
		}
		if again, err := os.ReadFile(file); err != nil || string(again) != string(text) {
			t.Error("the file was written over")
		}
		if _, err := os.Stat(file + "2"); err == nil {
			t.Error("an export that failed left a file")
		}
	})
}
