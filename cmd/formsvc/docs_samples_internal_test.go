//go:build long

package main

import (
	"os"
	"os/exec"
	"testing"
)

// The example requests of openapi.json work as shown, apart from the identifiers. Those in Go are tests of httpx/client.
func TestDocsSamples(t *testing.T) {
	t.Parallel()
	lookFor(t, "npm")
	if _, err := os.Stat("../../examples/clients"); err != nil {
		missing(t, "there are no clients here")
	}
	s, r := newShell(t).serve(t), receive(t)
	cmd := exec.CommandContext(t.Context(), lookFor(t, "node"), "../../httpx/testdata/samples/run.mjs", s.url, r.URL())
	cmd.Env = append(os.Environ(), "FORMSVC_KEY="+s.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
