//go:build long

package main_test

import (
	"os"
	"os/exec"
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
