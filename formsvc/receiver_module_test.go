//go:build long

package formsvc_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A receiver requires this module and downloads nothing else, not even for its tests: this test has
// no proxy and no module cache.
func TestReceiverNeedsNoOtherModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"main.go": `package main

import (
	"net/http"

	"github.com/formsvc/toolkit/webhook"
)

func main() {
	verifier, err := webhook.NewVerifier([]string{"secret"}, nil)
	if err != nil {
		panic(err)
	}
	http.Handle("/", verifier.Handler(http.NotFoundHandler()))
}
`,
		"main_test.go": `package main

import (
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

func Test(*testing.T) { webhooktest.NewRequest("secret", nil) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cache := t.TempDir()
	for _, args := range [][]string{
		{"mod", "init", "example.com/receiver"}, {"mod", "edit", "-replace", "github.com/formsvc/toolkit=" + root},
		{"mod", "tidy"}, {"vet", "./..."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "GOMODCACHE="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || strings.Count(string(mod), "\nrequire ") != 1 || strings.Contains(string(mod), "require (") {
		t.Errorf("go.mod, %v, want one requirement:\n%s", err, mod)
	}
	if sum, err := os.ReadFile(filepath.Join(dir, "go.sum")); !errors.Is(err, fs.ErrNotExist) && len(sum) > 0 {
		t.Errorf("go.sum names other modules:\n%s", sum)
	}
}
