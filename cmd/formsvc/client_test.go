//go:build long

package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// errNoModules means that the modules of the generator can't be downloaded.
var errNoModules = errors.New("the modules of testdata/client cannot be fetched")

// A client that oapi-codegen generates from the served OpenAPI document can make calls of every kind, and every response matches
// the document. Its program is in testdata/client, a separate module, so that users of this module don't depend on the
// generator.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	s := execute(t, databases()[0].dsn(t), nil, allowLoopback...).started(t)
	key := s.firstKey(t)
	path, err := buildClient(t.Context(), s.url)
	if errors.Is(err, errNoModules) {
		missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = environment("FORMSVC_URL="+s.url, "FORMSVC_KEY="+key)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("the generated client: %v\n%s", err, out)
	}
}

// buildClient generates the client from the document of the server and builds its program. It returns the program's path.
func buildClient(ctx context.Context, url string) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, "client-"); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/client")); err != nil {
		return "", err
	}
	if err := download(ctx, url+"/openapi.json", filepath.Join(dir, "openapi.json")); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "api"), 0o750); err != nil {
		return "", err
	}
	if err := inClient(ctx, dir, "mod", "download"); err != nil {
		return "", fmt.Errorf("%w: %w", errNoModules, err)
	}
	if err := inClient(ctx, dir, "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "openapi.json"); err != nil {
		return "", err
	}
	return filepath.Join(dir, "driver"), inClient(ctx, dir, "build", "-o", "driver", ".")
}

// inClient runs the go command in the module of the client.
func inClient(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// go.mod and go.sum must be complete, whatever flags this test runs with.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// download writes what is at the URL to a file.
func download(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
