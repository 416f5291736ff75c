//go:build long

package main_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settings-link prints a link to the running server, whatever its flags, and says if none runs.
func TestSettingsLinkLeadsToTheServer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		wants := func(base string, doubt bool, args ...string) {
			t.Helper()
			r := attempt(t, dsn, append([]string{"settings-link"}, args...)...)
			if r.status != 0 || !strings.HasPrefix(r.out, base+"/settings/sign-in/") {
				t.Errorf("%v: status %d, %s%s, want a link to %s", args, r.status, r.out, r.err, base)
			}
			if strings.Contains(r.err, "No server runs here") != doubt {
				t.Errorf("%v: it says %s", args, r.err)
			}
		}
		s := start(t, dsn)
		wants(s.url, false)
		wants("https://forms.example.com", false, "--base-url", "https://forms.example.com/")
		if status := newVisitor(t, s.url).signIn(manage(t, dsn, "settings-link")); status != 200 {
			t.Errorf("the link: status %d", status)
		}
		other := start(t, dsn, "--data", anotherMachine(t, dsn))
		wants(s.url, false)
		other.kill()
		s.terminate(t)
		s.stopped(t)
		if _, err := os.Stat(filepath.Join(dataDir(t, dsn), "serving.json")); err == nil {
			t.Error("a server that has ended is still noted")
		}
		wants("http://127.0.0.1:8080", true)
		wants("http://localhost:9000", true, "--addr", ":9000")

		s = start(t, dsn, "--base-url", "https://forms.example.com/api/")
		wants("https://forms.example.com/api", false)
		s.kill()
		wants("https://forms.example.com/api", true)
		wants("http://127.0.0.1:9000", true, "--addr", "127.0.0.1:9000")
		wants("http://127.0.0.1:8080", true, "--data", anotherMachine(t, dsn))

		s = start(t, dsn, "--addr", ":0")
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		wants("http://"+net.JoinHostPort("localhost", u.Port()), false)
	})
}

// anotherMachine returns a data directory with only the keys of the database.
func anotherMachine(t *testing.T, dsn string) string {
	t.Helper()
	dir := t.TempDir()
	keys, err := os.ReadFile(filepath.Join(dataDir(t, dsn), "secret.keys"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "secret.keys"), keys, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The link to a server with TLS is https.
func TestSettingsLinkWithTLS(t *testing.T) {
	t.Parallel()
	s := startTLS(t)
	want := "https://" + s.addr + "/settings/"
	if printed := manage(t, s.dsn, "settings-link"); !strings.HasPrefix(printed, want) {
		t.Errorf("%s, want a link to %s", printed, want)
	}
}
