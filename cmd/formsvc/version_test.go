//go:build long

package main_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The program shows its build with every command for it, and in its first log line.
func TestVersion(t *testing.T) {
	t.Parallel()
	line := invocation{args: []string{"version"}}.run(t).out
	if !strings.HasPrefix(line, "formsvc ") || !strings.HasSuffix(line, ", "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+"\n") {
		t.Errorf("version: %q", line)
	}
	if r := (invocation{args: []string{"--version"}}).run(t); r.status != 0 || r.out != line || r.err != "" {
		t.Errorf("--version: %+v", r)
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(invocation{args: []string{"version", "--json"}}.run(t).out), &record); err != nil || len(record) != 6 || record["go"] != runtime.Version() {
		t.Errorf("version --json: %v %v", record, err)
	}
	s := start(t, databases()[0].dsn(t))
	first, _, _ := strings.Cut(s.log.String(), "\n")
	if !strings.Contains(first, `"msg":"starting"`) || !strings.Contains(first, `"version":"`) || !strings.Contains(first, runtime.Version()) {
		t.Errorf("the log begins with %s", first)
	}
}

// A program that was built from a checkout shows the revision, and whether the checkout was modified.
func TestVersionOfCheckout(t *testing.T) {
	t.Parallel()
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "formsvc")
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	build := func() (b struct {
		Revision, Time string
		Modified       bool
	}) {
		t.Helper()
		command("go", "build", "-buildvcs=true", "-o", program, "./cmd/formsvc")
		if err := json.Unmarshal([]byte(command(program, "version", "--json")), &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, name := range []string{"go.mod", "go.sum", "blobstore", "cmd/formsvc", "formsvc", "httpx", "storage", "webhook"} {
		command("mkdir", "-p", filepath.Dir(name))
		from, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		command("cp", "-R", from, name)
	}
	command("git", "init", "-q")
	command("git", "add", ".")
	command("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "a release")
	revision := command("git", "rev-parse", "HEAD")
	if b := build(); b.Revision != revision || b.Time == "" || b.Modified {
		t.Errorf("%+v, want revision %s without changes", b, revision)
	}
	command("git", "rm", "-q", "cmd/formsvc/README.md")
	if b := build(); b.Revision != revision || !b.Modified {
		t.Errorf("%+v, want revision %s with changes", b, revision)
	}
}
