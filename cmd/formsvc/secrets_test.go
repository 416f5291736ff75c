//go:build long

package main_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A database without its keys reveals no secret and no header value, and only the owner can read the key file.
func TestSecretsAtRest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		const token, second = "a very secret token", "the second secret of the tests"
		uuid := hook(t, dsn, r.URL(), "response.created", "--header", "X-Token: "+token)
		c.submit(t, c.campaign(t, "At rest"), "marker-in-the-clear")
		arrivals(t, r, 1)
		manage(t, dsn, "webhooks", "rotate", uuid, "--secret", second)
		for name, content := range contents(t, dsn) {
			for _, text := range []string{secret, second, token} {
				if bytes.Contains(content, []byte(text)) {
					t.Errorf("%s contains %q", name, text)
				}
			}
		}
		if all := slices.Collect(maps.Values(contents(t, dsn))); !bytes.Contains(bytes.Join(all, nil), []byte(r.URL())) {
			t.Error("INVALID: what was read of the database does not have the webhook in it")
		}
		path := filepath.Join(dataDir(t, dsn), "secret.keys")
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file of keys: %v, %v", info, err)
		}
	})
}

// contents returns all bytes of a database: of its files, or of a dump.
func contents(t testing.TB, dsn string) map[string][]byte {
	t.Helper()
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) < 2 { // with the write-ahead log
			t.Fatalf("the database has the files %v (%v)", files, err)
		}
		all := make(map[string][]byte)
		for _, f := range files {
			if all[filepath.Base(f)], err = os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	schema := q.Get("search_path")
	q.Del("search_path")
	u.RawQuery = q.Encode()
	dump, err := exec.CommandContext(t.Context(), "pg_dump", "--schema", schema, u.String()).Output()
	if err != nil {
		return tableContents(t, dsn) // pg_dump has another version than the server
	}
	return map[string][]byte{"pg_dump": dump}
}

// tableContents returns every row of every table as text.
func tableContents(t testing.TB, dsn string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, table := range tables(t, dsn) {
		text := fmt.Sprintf("SELECT t::text FROM %q AS t", table)
		all[table] = []byte(strings.Join(query[string](t, dsn, "", text), "\n"))
	}
	return all
}

// keysIn returns the number of keys in the file of a data directory.
func keysIn(t testing.TB, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "secret.keys"))
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`(?m)^[^#\s].*$`).FindAll(text, -1))
}

// The key can be rotated while a server delivers. Deliveries continue, everything is encrypted with the new key afterwards,
// and the old one is no longer needed.
func TestRotateKeyWhileServing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		dir := dataDir(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Rotate")
		r := receiver(t)
		hook(t, dsn, r.URL(), "response.created", "--header", "X-Token: t")
		submitted := 0
		submit := func(what string) {
			submitted++
			c.submit(t, campaign, what)
			got := arrivals(t, r, submitted)
			if h := got[submitted-1].Header; h.Get("X-Token") != "t" {
				t.Errorf("%s: sent with %v", what, h)
			}
		}
		submit("before")
		if out := attempt(t, dsn, "secrets", "rotate-key"); out.status != 0 || !strings.Contains(out.err, "1 webhooks") || keysIn(t, dir) != 2 {
			t.Errorf("rotate-key: status %d, %s, %d keys", out.status, out.err, keysIn(t, dir))
		}
		submit("after rotate-key")
		// Created by the running server, with the key that it knows by then.
		var made struct{ UUID string }
		c.want(t, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL(), "events": []string{"response.created"}, "campaignUuid": c.campaign(t, "Other")}, &made)
		if out := attempt(t, dsn, "secrets", "rotate-key", "--drop-old"); out.status != 0 || !strings.Contains(out.err, "2 webhooks") || keysIn(t, dir) != 1 {
			t.Errorf("rotate-key --drop-old: status %d, %s, %d keys", out.status, out.err, keysIn(t, dir))
		}
		submit("after rotate-key --drop-old")
		s.terminate(t)
		s.stopped(t)
		s = start(t, dsn)
		c.url = s.url
		submit("after a restart")
		if log := s.log.String(); strings.Contains(log, "cannot") {
			t.Errorf("the log reports trouble:\n%s", log)
		}
	})
}

// A server without the key of the database doesn't start, and says what to do. It starts with the file of the other node,
// or with that node's keys in the environment.
func TestWrongKeyRefusesToStart(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		manage(t, dsn, "accounts", "create", "default")
		hook(t, dsn, "https://example.com/", "all")
		file := filepath.Join(dataDir(t, dsn), "secret.keys")
		keys, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(t.TempDir(), "data")
		other := "FORMSVC_SECRET_KEYS=" + strings.Repeat("0123456789abcdef", 4)
		for _, x := range []struct {
			label     string
			variables []string
			flags     []string
			want      string
		}{
			{"a file of its own", nil, []string{"--data", elsewhere}, filepath.Join(elsewhere, "secret.keys")},
			{"other keys in the environment", []string{other}, nil, "FORMSVC_SECRET_KEYS doesn't have the key"},
		} {
			s := execute(t, dsn, x.variables, x.flags...)
			eventually(t, x.label+": formsvc ends", s.ended)
			if out := s.log.String(); s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, x.want) ||
				!strings.Contains(out, "Copy the file secret.keys") || strings.Contains(out, "0123456789abcdef") {
				t.Errorf("%s: status %d\n%s", x.label, s.cmd.ProcessState.ExitCode(), out)
			}
		}
		r := attempt(t, dsn, "webhooks", "list", "--data", filepath.Join(t.TempDir(), "none"))
		if r.status != 1 || !strings.Contains(r.err, "there is no ") {
			t.Errorf("webhooks list without keys: status %d, %s", r.status, r.err)
		}

		if err := os.WriteFile(filepath.Join(elsewhere, "secret.keys"), keys, 0o600); err != nil {
			t.Fatal(err)
		}
		execute(t, dsn, nil, "--data", elsewhere).started(t)
		lines := regexp.MustCompile(`(?m)^[^#\s].*$`).FindAllString(string(keys), -1)
		own := "FORMSVC_SECRET_KEYS=" + strings.Join(lines, ",")
		execute(t, dsn, []string{own}, "--data", filepath.Join(t.TempDir(), "none")).started(t)
	})
}

// With keys in the environment, rotate-key encrypts with the first one and adds none.
func TestRotateKeysOfTheEnvironment(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		a, b := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
		run := func(keys string, args ...string) result {
			return invocation{args: on(t, dsn, args), env: []string{"FORMSVC_SECRET_KEYS=" + keys}}.run(t)
		}
		for _, x := range []struct {
			keys, args string
			status     int
		}{
			{a, "accounts create default", 0},
			{a, "webhooks create --url https://example.com --events all", 0},
			{b, "webhooks list", 1},
			{b + "," + a, "webhooks list", 0},
			{b + "," + a, "secrets rotate-key", 0},
			{a, "webhooks list", 1},
			{b, "webhooks list", 0},
		} {
			r := run(x.keys, strings.Fields(x.args)...)
			if r.status != x.status || strings.Contains(r.err+r.out, a) || strings.Contains(r.err+r.out, b) {
				t.Errorf("%s: status %d, want %d\n%s", x.args, r.status, x.status, r.err)
			}
		}
		if made, err := os.ReadDir(dataDir(t, dsn)); err == nil && len(made) > 0 {
			t.Errorf("the data directory has %v in it", made)
		}
	})
}
