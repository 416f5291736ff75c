//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lookFor returns the path of a program that a test needs: the first of the names or paths that exists.
func lookFor(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "there is no "+names[0]+" here")
	return ""
}

// missing skips a test that lacks a requirement. In CI it fails the test.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what + ", and in CI nothing may be skipped")
	}
	t.Skip("SKIPPED: " + what)
}

// tool runs a program, which must succeed; those of Postgres may be only in the server's directory.
func tool(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	beside, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is right
	cmd := exec.CommandContext(t.Context(), lookFor(t, append([]string{name}, beside...)...), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Each alert has a test in alerts_test.yml, and all pass in Prometheus's own tool.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile(filepath.Join(monitoringDir, "alerts_test.yml")))
	for what := range queries(t) {
		if name, ok := strings.CutPrefix(what, "alert "); ok && !strings.Contains(string(text), "alertname: "+name+"\n") {
			t.Errorf("%s has no test", what)
		}
	}
	tool(t, monitoringDir, "promtool", "check", "config", "prometheus.yml")
	tool(t, monitoringDir, "promtool", "test", "rules", "alerts_test.yml")
}
