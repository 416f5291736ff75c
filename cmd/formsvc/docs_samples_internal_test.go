//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The example requests of openapi.json work as shown, apart from the identifiers. Those in Go are tests of httpx/client.
func TestDocsSamples(t *testing.T) {
	t.Parallel()
	api, clients := filepath.Join("..", "..", "httpx"), filepath.Join("..", "..", "examples", "clients")
	if _, err := os.Stat(clients); err != nil {
		missing(t, "there is no "+clients+" here")
	}
	for label, program := range map[string][]string{"curl": {"sh", ".sh"}, "Python": {"python3", ".py"}, "TypeScript": {"node", ".js"}} {
		t.Run(label, func(t *testing.T) {
			lookFor(t, "curl")
			s, r, dir := newShell(t).serve(t), receive(t), t.TempDir()
			for _, file := range []string{
				filepath.Join(api, "openapi.json"), filepath.Join(api, "testdata", "samples", "run.mjs"), filepath.Join(clients, "python", "formsvc.py"),
			} {
				tool(t, "", "cp", file, dir)
			}
			if err := os.WriteFile(filepath.Join(dir, "passport.txt"), []byte("passport"), 0o600); err != nil {
				t.Fatal(err)
			}
			if label == "TypeScript" {
				tool(t, "", "sh", "-c", `cp "$0"/*.json "$0"/[!e]*.ts "$1" && cd "$1" && npm ci --no-audit --no-fund --ignore-scripts && node run.mjs --write &&
					npx openapi-typescript openapi.json --output schema.d.ts && npx tsc`, filepath.Join(clients, "typescript"), dir)
			}
			cmd := exec.CommandContext(t.Context(), lookFor(t, "node"), "run.mjs", label, program[0], program[1], s.url, r.URL())
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "FORMSVC_KEY="+s.key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
