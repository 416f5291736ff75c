package main

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// The data of the person to erase. The name and the answer appear nowhere else.
const (
	eveEmail  = "Eve.Erased@Example.com"
	eveAnswer = "unmistakable answer"
)

// An estate is a server with a webhook and two responses. Eve has submitted one, with a file, and signed the other.
type estate struct {
	*service

	hooked, campaign, eves, others string
}

func newEstate(t testing.TB) *estate {
	t.Helper()
	e := &estate{service: newShell(t).serve(t)}
	r := receive(t)
	e.hooked = e.hook(t, r.URL(), "all")
	e.campaign = e.service.campaign(t)
	e.others = e.submit(t, e.campaign)
	e.eves = e.made(t, responses(e.campaign), submission(eveEmail, eveAnswer))
	path := responses(e.campaign) + "/" + e.eves
	e.made(t, path+"/files", content(3, 100_000))
	e.call(t, http.StatusOK, http.MethodPatch, path, map[string]string{"status": "completed"})
	e.made(t, path+"/comments", map[string]string{"body": "Called " + eveEmail})
	e.made(t, responses(e.campaign)+"/"+e.others+"/signatures", map[string]any{"signer": map[string]string{"email": strings.ToLower(eveEmail)}})
	arrived(t, r, 6) // created twice, file, two of the status, signature
	until(t, "all is delivered", func() bool { return len(e.list(t, "webhooks", "deliveries", e.hooked, "--state", "delivered")) == 6 })
	return e
}

// traces returns where the person's data is below the data directory and in the log.
func (e *estate) traces(t testing.TB) (list []string) {
	t.Helper()
	look := func(name string, text []byte) {
		for _, s := range []string{eveEmail, eveAnswer} {
			if bytes.Contains(bytes.ToLower(text), []byte(strings.ToLower(s))) {
				list = append(list, s+" in "+name)
			}
		}
	}
	look("the log", []byte(e.log.String()))
	for path, text := range filesIn(t, e.data) {
		look(path, text)
	}
	return list
}

// filesIn returns the files below a directory by their relative paths.
func filesIn(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	noError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name], err = os.ReadFile(path)
		return err
	}))
	return files
}

// stored returns the paths of the blobs of files.
func (s *shell) stored(t testing.TB) (list []string) {
	t.Helper()
	for name := range filesIn(t, filepath.Join(s.data, "files")) {
		if filepath.Base(name) != formsvc.MarkerKey {
			list = append(list, filepath.Join(s.data, "files", name))
		}
	}
	return list
}

// counted checks the numbers in a receipt, of which all others must be 0.
func counted(t testing.TB, receipt map[string]any, want map[string]float64) {
	t.Helper()
	for name, v := range receipt {
		if n, ok := v.(float64); ok && n != want[name] {
			t.Errorf("%s is %v, want %v", name, n, want[name])
		}
	}
}

// Beside a running server, an erasure removes all data of a person from every file of the database. A receipt and audit entries stay.
func TestErase(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	if len(e.traces(t)) < 2 {
		t.Fatal("INVALID: no traces before")
	}
	done := e.record(t, "erase", "--email", strings.ToUpper(eveEmail))
	counted(t, done, map[string]float64{"responses": 1, "files": 1, "signatures": 1, "events": 5})
	if done["complete"] != true || done["finishedAt"] == nil {
		t.Errorf("the receipt: %v", done)
	}
	e.call(t, http.StatusNotFound, http.MethodGet, responses(e.campaign)+"/"+e.eves, nil)
	e.call(t, http.StatusOK, http.MethodGet, responses(e.campaign)+"/"+e.others, nil)
	if left := e.traces(t); len(left) != 0 || len(e.stored(t)) != 0 {
		t.Errorf("traces are left: %q, %q", left, e.stored(t))
	}
	e.trail(t, done["receipt"].(string))
	counted(t, e.record(t, "erase", "--email", eveEmail), nil)
	contains(t, "erase as text", e.do(t, "erase", "--email", eveEmail), "responses   0\n", "finished    2")
	e.refuses(t, []mistake{{"accounts delete default", 2, "--yes"}, {"accounts delete --yes Nobody", 1, "Nobody"}})
	counted(t, e.record(t, "accounts", "delete", "default", "--yes"), map[string]float64{"responses": 1, "events": 2})
	if list := e.list(t, "accounts", "list"); len(list) != 0 {
		t.Errorf("there are the accounts %v", list)
	}
}

// trail checks the audit trail after an erasure.
func (e *estate) trail(t testing.TB, receipt string) {
	t.Helper()
	me := must(user.Current())
	list := e.list(t, "audit", "list")
	cli := "cli " + me.Username
	want := [][2]string{{cli, "erasure.done"}, {cli, "erasure.begun"}, {cli, "webhook.created"}, {"serve", "link.created"}, {"serve", "account.created"}}
	if len(list) != len(want) {
		t.Fatalf("the audit trail is %v", list)
	}
	for i, w := range want {
		if list[i]["actor"] != w[0] || list[i]["action"] != w[1] {
			t.Errorf("entry %d is %v, want %v", i, list[i], w)
		}
	}
	if list[0]["target"] != receipt || list[0]["details"].(map[string]any)["events"] != "5" || list[2]["target"] != e.hooked {
		t.Errorf("the audit trail is %v", list)
	}
	if got := e.list(t, "audit", "list", "--limit", "2"); len(got) != 2 || got[1]["uuid"] != list[1]["uuid"] {
		t.Errorf("--limit 2: %v", got)
	}
	if got := e.list(t, "audit", "list", "--action", "webhook.created", "--since", "1d"); len(got) != 1 || got[0]["uuid"] != list[2]["uuid"] {
		t.Errorf("--action: %v", got)
	}
	if text := e.do(t, "audit", "list"); strings.Count(text, "\n") != 6 || !strings.Contains(text, `"`+cli+`"`) || !strings.Contains(text, `"events":"5"`) {
		t.Errorf("as text: %s", text)
	}
}

// Old responses are removed. To avoid waiting, they are old at once or never here; package formsvc tests the age itself.
func TestRetention(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	line := []string{"retention", "run", "--campaign", e.campaign, "--older-than"}
	young := e.record(t, append(line, "365d")...)
	counted(t, young, nil)
	if young["complete"] != true || young["campaignUuid"] != e.campaign {
		t.Errorf("nothing is that old: %v", young)
	}
	counted(t, e.record(t, append(line, "1ms")...), map[string]float64{"responses": 2, "files": 1, "events": 6})
	e.call(t, http.StatusNotFound, http.MethodGet, responses(e.campaign)+"/"+e.others, nil)
	if left := e.stored(t); len(left) != 0 {
		t.Errorf("blobs are left: %q", left)
	}
	if list := e.list(t, "audit", "list", "--action", "retention.done"); len(list) != 2 || list[0]["target"] != e.campaign {
		t.Errorf("the audit trail is %v", list)
	}
}

// An export has all data of a person, and the audit trail reports it without the address.
func TestPersonExport(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	out := filepath.Join(t.TempDir(), "eve.zip")
	receipt := e.record(t, "person", "export", "--email", strings.ToUpper(eveEmail), "--out", out)
	counted(t, receipt, map[string]float64{"responses": 1, "files": 1, "signatures": 1, "events": 5})
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	archive := must(zip.OpenReader(out))
	defer func() { _ = archive.Close() }()
	texts := make(map[string]string)
	for _, f := range archive.File {
		r := must(f.Open())
		text := must(io.ReadAll(r))
		name, _, _ := strings.Cut(f.Name, "/") // one file of the person
		texts[name] = string(text)
	}
	contains(t, "responses", texts["responses.ndjson"], eveAnswer)
	contains(t, "comments", texts["comments.ndjson"], "Called "+eveEmail)
	contains(t, "signatures", texts["signatures.ndjson"], strings.ToLower(eveEmail))
	contains(t, "files", texts["files.ndjson"], "plan.pdf")
	contains(t, "events", texts["events.ndjson"], "file.uploaded")
	contains(t, "the receipt", texts["receipt.json"], receipt["receipt"].(string))
	if texts["files"] != string(content(3, 100_000)) {
		t.Errorf("the file has %d other bytes", len(texts["files"]))
	}
	trail := e.do(t, "audit", "list", "--json")
	contains(t, "the audit trail", trail, "export.done", receipt["receipt"].(string))
	lacks(t, "the audit trail", strings.ToLower(trail), strings.ToLower(eveEmail))
	other := filepath.Join(t.TempDir(), "other.zip")
	contains(t, "an export of nobody", e.do(t, "person", "export", "--email", "nobody@example.com", "--out", other), "responses   0\n")
	e.refuses(t, []mistake{
		{"person export --email " + eveEmail + " --out " + out, 2, "already exists"},
		{"person export --email nonsense --out " + other + "2", 1, "/email"},
		{"person export --email eve@example.com", 2, "--out"},
	})
	if _, err := os.Stat(other + "2"); err == nil {
		t.Error("a failed export leaves its file")
	}
}

// Errors of the commands about persons name the mistake and change nothing.
func TestErasureMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	s.refuses(t, []mistake{
		{"erase", 2, "--email"},
		{"erase --email nonsense", 1, "/email"},
		{"erase --email eve@example.com --account Nobody", 1, "Nobody"},
		{"retention run --older-than 1h", 2, "--campaign"},
		{"retention run --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than 1h --campaign x", 2, "--campaign"},
		{"retention run --older-than 1h --campaign " + nobody, 1, nobody},
		{"retention run --older-than 0d --campaign " + nobody, 2, "--older-than"},
		{"audit list --limit 0", 2, "--limit"},
		{"audit list --since yesterday", 2, "--since"},
		{"audit list --account Nobody", 1, "Nobody"},
	})
	if list := s.list(t, "audit", "list"); len(list) != 1 {
		t.Errorf("the audit trail is %v", list)
	}
}

// The command writes the same export as the API, with the same filters, to standard output or to a new file of its owner.
func TestExportCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	campaign := s.campaign(t)
	var ids []string
	for range 6 {
		ids = append(ids, s.submit(t, campaign))
	}
	for id, status := range map[string]string{ids[3]: "completed", ids[5]: "Lu,vu"} {
		s.call(t, http.StatusOK, http.MethodPatch, responses(campaign)+"/"+id, map[string]string{"status": status})
	}
	for flags, query := range map[string]string{
		"":                                     "order=asc",
		`--status Lu\,vu,completed`:            "order=asc&status=completed&status=Lu%2Cvu",
		"--order desc --email ada@example.com": "order=desc&email=ada@example.com",
		"--after " + ids[2]:                    "order=asc&cursor=" + ids[2],
		"--created-before 1h":                  "order=asc&createdBefore=2000-01-01T00:00:00Z",
		"--updated-after 1h --email n@x.de":    "order=asc&email=n@x.de",
	} {
		for _, format := range []string{"csv", "ndjson"} {
			line := append([]string{"export", "--campaign", campaign, "--format", format}, strings.Fields(flags)...)
			if got, want := s.do(t, line...), s.call(t, http.StatusOK, http.MethodGet, responses(campaign)+"."+format+"?"+query, nil); got != want {
				t.Errorf("%s as %s:\n%s\nthe API gives\n%s", flags, format, got, want)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "out.csv")
	s.do(t, "export", "--campaign", campaign, "--out", file)
	text, err := os.ReadFile(file)
	if info, statErr := os.Stat(file); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || bytes.Count(text, []byte("\r\n")) != 7 {
		t.Errorf("the file: %v, %v: %s", err, statErr, text)
	}
	s.refuses(t, []mistake{
		{"export --campaign " + campaign + " --out " + file, 2, "already exists"},
		{"export --campaign x", 2, "--campaign"},
		{"export --campaign " + campaign + " --after x", 2, "--after"},
		{"export --campaign " + campaign + " --created-after yesterday", 2, "--created-after"},
		{"export --campaign " + campaign + " --format xml", 2, "--format"},
		{"export --campaign " + nobody + " --out " + file + "2", 1, "no campaign"},
	})
	equal(t, string(must(os.ReadFile(file))), string(text), "the file was overwritten: %v")
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("a failed export leaves its file")
	}
}

// Damaged and lost files are listed with status 1. A sweep removes only old bytes that belong to no file.
func TestFilesCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	path := responses(s.campaign(t))
	path += "/" + s.made(t, path, submission("ada@example.com", "yes")) + "/files"
	uuids := make(map[string]string)
	for i, name := range []string{"whole", "flipped", "gone"} {
		uuids[s.made(t, path, content(i, 1000))] = name
	}
	if r := s.try(t, "files", "verify"); r.status != 0 || r.out != "" || !strings.Contains(r.err, "3 files checked, 0 damaged") {
		t.Errorf("verify: %+v", r)
	}
	for _, blob := range s.stored(t) {
		var err error
		switch uuids[filepath.Base(blob)] {
		case "flipped":
			text, _ := os.ReadFile(blob)
			text[500] ^= 1
			err = os.WriteFile(blob, text, 0o600)
		case "gone":
			err = os.Remove(blob)
		}
		noError(t, err)
	}
	r := s.try(t, "files", "verify", "--json")
	damaged := objects(t, r.out)
	if r.status != 1 || len(damaged) != 2 || uuids[damaged[0]["uuid"].(string)] == "whole" || uuids[damaged[1]["uuid"].(string)] == "whole" || damaged[0]["name"] != "plan.pdf" {
		t.Errorf("verify: %+v", r)
	}

	orphan := filepath.Join(s.data, "files", "ab", "01900000-0000-7000-8000-0000000000ab")
	noError(t, os.MkdirAll(filepath.Dir(orphan), 0o700))
	noError(t, os.WriteFile(orphan, []byte("orphan"), 0o600))
	if got := s.record(t, "files", "sweep"); got["removed"] != 0.0 {
		t.Errorf("a sweep of what is young: %v", got)
	}
	old := time.Now().Add(-48 * time.Hour)
	for _, blob := range s.stored(t) {
		noError(t, os.Chtimes(blob, old, old))
	}
	if got := s.record(t, "files", "sweep", "--dry-run"); got["orphans"] != 1.0 || got["removed"] != 0.0 || len(s.stored(t)) != 3 {
		t.Errorf("a dry run: %v, %q", got, s.stored(t))
	}
	if got := s.record(t, "files", "sweep"); got["removed"] != 1.0 || len(s.stored(t)) != 2 {
		t.Errorf("a sweep: %v, %q", got, s.stored(t))
	}
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the orphan is left")
	}
}

// A server and commands with another database can't touch the files.
func TestFilesOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	own := newShell(t).serve(t)
	path := responses(own.campaign(t))
	path += "/" + own.made(t, path, submission("ada@example.com", "yes")) + "/files"
	file := own.made(t, path, content(1, 1000))
	own.stop()
	blobs := "file:" + filepath.Join(own.data, "files")
	other := newShell(t)
	p := other.background(t, "serve", "--addr", "127.0.0.1:0", "--blobs", blobs)
	p.log.wait(p.ctx, "serving")
	if status := p.stop(); status != 1 || p.out.String() != "" {
		t.Errorf("the server ended with status %d: %s", status, p.out.String())
	}
	contains(t, "the error", p.log.String(), "belongs to another database", "formsvc copy", "set --blobs to another")
	for _, flag := range []string{"--json", "--force", "--dry-run"} {
		other.refuses(t, []mistake{{"files sweep --blobs " + blobs + " " + flag, 1, "belongs to another database"}})
	}
	if r := other.try(t, "doctor", "--json", "--blobs", blobs); r.status != 1 || !strings.Contains(r.out, "belongs to another database") {
		t.Errorf("doctor: %+v", r)
	}
	if list := other.list(t, "accounts", "list"); len(list) != 0 {
		t.Errorf("the refused server made %v", list)
	}
	again := own.serve(t)
	again.key = own.key
	if got := again.call(t, http.StatusOK, http.MethodGet, "/v1/files/"+file, nil); got != string(content(1, 1000)) {
		t.Errorf("the file has %d other bytes", len(got))
	}
}
