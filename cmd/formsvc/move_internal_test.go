package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A stock is what a server has stored: it is compared after a restore or a copy.
type stock struct {
	key, campaign, response, file, webhook string
}

// filled starts a server on the shell and stores something of each kind.
func filled(t testing.TB, sh *shell) (*service, stock) {
	t.Helper()
	s := sh.serve(t)
	k := stock{key: s.key, campaign: s.campaign(t), webhook: sh.hook(t, "http://127.0.0.1:9/", "file.uploaded")}
	k.response = s.submit(t, k.campaign)
	k.file = s.made(t, responses(k.campaign)+"/"+k.response+"/files", content(1, 5000))
	return s, k
}

// has starts a server on the shell, which must have the same, and whose webhook must be usable.
func (k *stock) has(t testing.TB, sh *shell, flags ...string) {
	t.Helper()
	s := sh.serve(t, flags...)
	defer s.stop()
	equal(t, s.key, "", "the database is new:\n%s%s", s.out.String())
	s.key = k.key
	contains(t, "the response", s.call(t, http.StatusOK, http.MethodGet, responses(k.campaign)+"/"+k.response, nil), "ada@example.com")
	if got := s.call(t, http.StatusOK, http.MethodGet, "/v1/files/"+k.file, nil); got != string(content(1, 5000)) {
		t.Errorf("the file has %d other bytes", len(got))
	}
	contains(t, "the webhook", s.call(t, http.StatusOK, http.MethodGet, "/v1/webhooks/"+k.webhook, nil), "127.0.0.1:")
	if r := s.try(t, append([]string{"doctor", "--min-free", "1MB"}, flags...)...); !strings.Contains(r.out, "ok       secrets:") ||
		!strings.Contains(r.out, "ok       files: they belong to this database") {
		t.Errorf("doctor: %+v", r)
	}
}

// A backup beside a running server restores everything in another place: the rows, the files and the keys.
func TestBackupAndRestoreCommands(t *testing.T) {
	t.Parallel()
	s, k := filled(t, newShell(t))
	dir := filepath.Join(t.TempDir(), "backup")
	r := s.try(t, "backup", "--to", dir)
	if r.status != 0 || r.out != dir+"\n" {
		t.Fatalf("backup: %+v", r)
	}
	contains(t, "backup", r.err, "1 files (5.0 kB)", "sign webhooks in your name")
	lacks(t, "backup", r.err, "NOT INCLUDED")
	later := s.submit(t, k.campaign)

	to := newShell(t)
	r = to.try(t, "restore", "--from", dir)
	if r.status != 0 || r.out != "" {
		t.Fatalf("restore: %+v", r)
	}
	contains(t, "restore", r.err, "1 files (5.0 kB)", "revoke them again", "erase them again")
	k.has(t, to)
	if list := to.do(t, "export", "--campaign", k.campaign, "--format", "ndjson"); !strings.Contains(list, k.response) || strings.Contains(list, later) {
		t.Errorf("restored: %s", list)
	}

	// The database and the files may be elsewhere, and --data be missing.
	apart := newShell(t)
	place, data := t.TempDir(), filepath.Join(t.TempDir(), "new")
	apart.do(t, "restore", "--from", dir, "--data", data, "--db", "sqlite:"+filepath.Join(place, "forms.db"), "--blobs", "file:"+filepath.Join(place, "files"))
	if _, err := os.Stat(filepath.Join(data, keyFile)); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(place, "*.restoring*")); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}

	// Parts can be left out, and the commands say so.
	without := filepath.Join(t.TempDir(), "without")
	r = s.try(t, "backup", "--to", without, "--without-files", "--without-keys", "--json")
	if m := objects(t, r.out); r.status != 0 || len(m) != 1 || strings.Count(r.err, "NOT INCLUDED") != 2 {
		t.Errorf("backup without files and keys: %+v", r)
	}
	part := newShell(t)
	part.refuses(t, []mistake{{"restore --from " + without, 1, "Copy the file secret.keys"}, {"accounts list", 1, "no database"}})
	keys, err := os.ReadFile(filepath.Join(s.data, keyFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(part.data, keyFile), keys, 0o600)
	}
	noError(t, err)
	r = part.try(t, "restore", "--from", without)
	contains(t, "restore", r.err, "The backup has no encryption keys", "No files were restored")
	equal(t, len(part.stored(t)), 0, "%d files were restored")
	contains(t, "the webhooks", part.do(t, "webhooks", "list"), k.webhook)
}

// Damaged files are named, in the backup and in the restore, and everything else is kept.
func TestBackupOfDamagedFiles(t *testing.T) {
	t.Parallel()
	s, k := filled(t, newShell(t))
	s.made(t, responses(k.campaign)+"/"+k.response+"/files", content(2, 5000))
	whole := filepath.Join(t.TempDir(), "whole")
	s.do(t, "backup", "--to", whole)
	for _, blob := range s.stored(t) {
		if filepath.Base(blob) == k.file {
			noError(t, os.Remove(blob))
		}
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if r := s.try(t, "backup", "--to", dir); r.status != 1 || !strings.Contains(r.err, "file "+k.file+" is damaged or missing") || !strings.Contains(r.err, "and 1 files") {
		t.Errorf("backup: %+v", r)
	}
	for name := range filesIn(t, whole) {
		if strings.HasSuffix(name, k.file) {
			noError(t, os.Truncate(filepath.Join(whole, name), 10))
		}
	}
	to := newShell(t)
	if r := to.try(t, "restore", "--from", whole); r.status != 1 || !strings.Contains(r.err, "file "+k.file+" was not restored") || len(to.stored(t)) != 1 {
		t.Errorf("restore: %+v, %q", r, to.stored(t))
	}
}

// The commands reject what would lose data, and say what to do.
func TestBackupMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	saved := filepath.Join(dir, "backup")
	s.refuses(t, []mistake{
		{"backup --to " + saved, 1, "no database"},
		{"restore --from " + dir, 1, "not a whole backup"},
		{"restore", 2, "--from"},
		{"restore --after-pg-restore", 2, "--after-pg-restore"},
		{"restore --from " + dir + " --db postgres://nowhere", 2, "--after-pg-restore"},
		{"backup --to x --db postgres://nowhere", 1, "pg_dump"},
	})
	if made, _ := os.ReadDir(dir); len(made) > 0 {
		t.Fatalf("they made %v", made)
	}
	s.do(t, "accounts", "create", "default")
	s.do(t, "backup", "--to", saved)
	s.refuses(t, []mistake{
		{"backup --to " + saved, 2, "--to"},
		{"restore --from " + saved, 1, "overwrites nothing"},
	})
	// No command creates an empty database where a restore was interrupted.
	cut := newShell(t)
	noError(t, errors.Join(os.Mkdir(cut.data, 0o700), os.WriteFile(filepath.Join(cut.data, "formsvc.db.restoring"), nil, 0o600)))
	cut.refuses(t, []mistake{{"accounts list", 1, "restore"}, {"accounts create a", 1, "restore"}, {"serve --addr 127.0.0.1:0", 1, "restore"}})
}

// A database is moved in both directions, with its files. The old one is used no more.
func TestCopyCommand(t *testing.T) {
	t.Parallel()
	from := newShell(t)
	s, k := filled(t, from)
	s.stop()
	source, pg, files := "sqlite:"+filepath.Join(from.data, "formsvc.db"), postgrestest.DSN(t), "file:"+filepath.Join(t.TempDir(), "files")
	move := []string{"copy", "--from", source, "--to", pg, "--from-blobs", "file:" + filepath.Join(from.data, "files"), "--to-blobs", files}
	if r := from.try(t, append(move, "--verify")...); r.status != 1 {
		t.Errorf("verify before: %+v", r)
	}
	r := from.try(t, move...)
	if r.status != 0 || r.out != "" {
		t.Fatalf("copy: %+v", r)
	}
	contains(t, "copy", r.err, "Moved and compared", "1 files (5.0 kB)", "No server starts on the old database")
	if r := from.try(t, append(move, "--verify")...); r.status != 0 || !strings.Contains(r.err, "Both databases have the same") {
		t.Errorf("verify: %+v", r)
	}
	from.refuses(t, []mistake{{"serve --addr 127.0.0.1:0", 1, "its data is in"}})
	k.has(t, &shell{data: from.data, db: pg}, "--blobs", files)

	back := "sqlite:" + filepath.Join(t.TempDir(), "back.db")
	if r := from.try(t, "copy", "--from", pg, "--to", back, "--json"); r.status != 0 || len(objects(t, r.out)) != 1 || !strings.Contains(r.err, "files stayed where they were") {
		t.Fatalf("copy back: %+v", r)
	}
	k.has(t, &shell{data: from.data, db: back}, "--blobs", files)
}

// Impossible copies are rejected with an error that doesn't show the password. The source stays in use.
func TestCopyMistakes(t *testing.T) {
	t.Parallel()
	from := newShell(t)
	s, k := filled(t, from)
	s.stop()
	source, empty := "sqlite:"+filepath.Join(from.data, "formsvc.db"), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
	from.refuses(t, []mistake{
		{"copy --from " + source, 2, "--to"},
		{"copy --from " + source + " --to " + empty + " --to-blobs file:x", 2, "set both"},
		{"copy --from mysql://x --to " + empty, 2, "--from: unknown scheme"},
		{"copy --from sqlite:missing.db --to " + empty, 1, "no such database"},
		{"copy --from " + source + " --to " + empty + " --data " + t.TempDir(), 1, "unknown key"},
		{"copy --from " + source + " --to " + strings.Replace(source, "sqlite:/", "sqlite:/./", 1), 1, "the same data"},
	})
	r := from.try(t, "copy", "--from", source, "--to", "postgres://me:hunter2@127.0.0.1:1/none")
	if r.status != 1 || strings.Contains(r.err, "hunter2") {
		t.Errorf("an unreachable target: %+v", r)
	}
	for _, blob := range from.stored(t) {
		noError(t, os.Truncate(blob, 1))
	}
	move := "copy --from " + source + " --from-blobs file:" + filepath.Join(from.data, "files") + " --to-blobs file:" + t.TempDir() + " --to " + empty
	from.refuses(t, []mistake{{move, 1, "Use --skip-damaged"}})
	if r := from.try(t, strings.Fields(move+"2 --skip-damaged")...); r.status != 0 || !strings.Contains(r.err, "file "+k.file+" is damaged") {
		t.Errorf("--skip-damaged: %+v", r)
	}
}

// "migrate up" creates the schema once, and "migrate status" lists its steps.
func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		if r := s.try(t, "migrate", "status", "--json"); r.status != 1 || !strings.Contains(r.err, "formsvc serve") || strings.Contains(r.out, `"appliedAt":"`) {
			t.Errorf("%s: status of an empty database: %+v", name, r)
		}
		s.do(t, "migrate", "up")
		applied := s.do(t, "migrate", "status", "--json")
		s.do(t, "migrate", "up")
		if again := s.do(t, "migrate", "status", "--json"); objects(t, applied)[0]["appliedAt"] == nil || again != applied {
			t.Errorf("%s: %v, then %v", name, applied, again)
		}
	}
}

// A used SQLite database in the data directory is not left behind by mistake for an empty Postgres one.
func TestEmptyPostgresBesideUsedSQLite(t *testing.T) {
	t.Parallel()
	own := newShell(t)
	s, _ := filled(t, own)
	s.stop()
	moving := onPostgres(t)
	empty := moving.data
	moving.data = own.data
	path := filepath.Join(own.data, "formsvc.db")
	for _, line := range []string{"serve --addr 127.0.0.1:0", "doctor"} {
		r := moving.try(t, strings.Fields(line)...)
		equal(t, r.status, 1, "%s: status %d", line)
		contains(t, line, r.out+r.err, "there is a SQLite database "+path, "formsvc copy --from sqlite:"+path, "set --data to another directory")
		lacks(t, line, r.out+r.err, moving.db)
	}
	moving.refuses(t, []mistake{{"accounts list", 1, "no tables of formsvc"}})
	moving.data = empty
	moving.serve(t)
}

// keysIn returns the keys in the file of the data directory.
func keysIn(t testing.TB, s *shell) []string {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(s.data, keyFile)))
	return regexp.MustCompile(`(?m)^[^#\s].*$`).FindAllString(string(text), -1)
}

// The key can be rotated while a server delivers. Afterwards everything is encrypted with the new key. Secrets are never stored in the clear.
func TestRotateKeyCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	campaign, r := s.campaign(t), receive(t)
	const token = "a very secret token"
	uuid := s.hook(t, r.URL(), "response.created", "--header", "X-Token: "+token)
	submitted := 0
	submit := func(what string) {
		t.Helper()
		submitted++
		s.submit(t, campaign)
		if got := arrived(t, r, submitted)[submitted-1]; got.Header.Get("X-Token") != token {
			t.Errorf("%s: sent with %v", what, got.Header)
		}
	}
	submit("before")
	if out := s.try(t, "secrets", "rotate-key"); out.status != 0 || !strings.Contains(out.err, "secrets of 1 webhooks") || len(keysIn(t, s.shell)) != 2 {
		t.Errorf("rotate-key: %+v, %d keys", out, len(keysIn(t, s.shell)))
	}
	submit("after rotate-key")
	if out := s.try(t, "secrets", "rotate-key", "--drop-old"); out.status != 0 || !strings.Contains(out.err, "removed") || len(keysIn(t, s.shell)) != 1 {
		t.Errorf("rotate-key --drop-old: %+v, %d keys", out, len(keysIn(t, s.shell)))
	}
	submit("after rotate-key --drop-old")
	s.stop()
	key := s.key
	s = s.serve(t)
	s.key = key
	submit("after a restart")
	for name, text := range filesIn(t, s.data) {
		lacks(t, name, string(text), token, testSecret, key)
	}
	if info, err := os.Stat(filepath.Join(s.data, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
	contains(t, "webhooks get", s.do(t, "webhooks", "get", uuid), r.URL())
}

// Without the key of the database, nothing starts, and the error says what to do. Keys may come from the environment, which rotate-key doesn't change.
func TestKeysInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	a, b := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	for _, x := range []struct {
		keys, line string
		status     int
	}{
		{a, "accounts create default", 0},
		{a, "webhooks create --url https://example.com --events all", 0},
		{b, "webhooks list", 1},
		{b, "serve --addr 127.0.0.1:0", 1},
		{b + "," + a, "webhooks list", 0},
		{b + "," + a, "secrets rotate-key", 0},
		{a, "webhooks list", 1},
		{b, "webhooks list", 0},
		{"short", "webhooks list", 2},
		{b, "secrets rotate-key --drop-old", 2},
	} {
		s.env = environment{"FORMSVC_SECRET_KEYS=" + x.keys}
		r := s.try(t, strings.Fields(x.line)...)
		if r.status != x.status || x.status == 1 && !strings.Contains(r.err, "FORMSVC_SECRET_KEYS doesn't have the key") {
			t.Errorf("%s: %+v, want %d", x.line, r, x.status)
		}
		lacks(t, x.line, r.out+r.err, a, b)
	}
	s.env = nil
	s.refuses(t, []mistake{
		{"webhooks list", 1, "there is no " + filepath.Join(s.data, keyFile)},
		{"secrets rotate-key", 1, "there is no key file"},
	})
}
