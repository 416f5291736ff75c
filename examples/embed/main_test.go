package main

import (
	"os"
	"strings"
	"testing"
)

// TestMainHasTenLines counts the lines from the beginning of main to the one that serves.
func TestMainHasTenLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, main, found := strings.Cut(string(source), "\nfunc main() {\n")
	before, _, serves := strings.Cut(main, "\tlog.Fatal(server.ListenAndServe())\n}\n")
	if lines := strings.Count(before, "\n"); !found || !serves || lines > 10 {
		t.Errorf("%d lines between main and serving, want at most 10", lines)
	}
}
