//go:build long

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A client that oapi-codegen generates from the served OpenAPI document can make calls of every kind, and every response matches
// the document. Its program is in testdata/client, a separate module, so that users of this module don't depend on the
// generator. What ogen generates compiles.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	s, dir := newShell(t).serve(t, "--quota", "1000"), t.TempDir()
	document := s.call(t, http.StatusOK, http.MethodGet, "/openapi.json", nil)
	noError(t, errors.Join(os.CopyFS(dir, os.DirFS("testdata/client")), os.Mkdir(filepath.Join(dir, "api"), 0o750),
		os.WriteFile(filepath.Join(dir, "openapi.json"), []byte(document), 0o600)))
	if err := inClient(t, s, dir, "mod", "download"); err != nil {
		missing(t, fmt.Sprintf("the modules of testdata/client cannot be fetched: %v", err))
	}
	if err := errors.Join(inClient(t, s, dir, "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "openapi.json"), inClient(t, s, dir, "run", "."),
		inClient(t, s, dir, "tool", "ogen", "--config", "ogen.yml", "--target", "ogenapi", "--package", "ogenapi", "openapi.json"),
		inClient(t, s, dir, "build", "./ogenapi")); err != nil {
		t.Error(err)
	}
}

// inClient runs the go command in the module of the client.
func inClient(t testing.TB, s *service, dir string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	// go.mod and go.sum must be complete, whatever flags this test runs with.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "FORMSVC_URL="+s.url, "FORMSVC_KEY="+s.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
