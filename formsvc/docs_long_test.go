//go:build long

package formsvc_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackageDocs checks that every package of the tree, including nested modules, has a package
// comment. Each importable package must also have a tested example and a short package text.
func TestPackageDocs(t *testing.T) {
	t.Parallel()
	packages := 0
	for _, dir := range directories(t) {
		p := parseDir(t, dir)
		if p.name == "" {
			continue
		}
		packages++
		if p.comment == "" {
			t.Errorf("%s: no package comment", dir)
		}
		if isLeaf(dir) || slices.Contains(strings.Split(dir, "/"), "internal") {
			continue
		}
		if want := "Package " + p.name + " "; !strings.HasPrefix(p.comment, want) {
			t.Errorf("%s: the package comment does not begin with %q", dir, want)
		}
		p.checkExamples(t, dir)
		limit := max(lines, longer[dir])
		if n := bytes.Count(goDoc(t, dir), []byte("\n")); n > limit {
			t.Errorf("%s: go doc prints %d lines, want %d at most: move details to the types and methods", dir, n, limit)
		}
	}
	if packages < 25 {
		t.Errorf("found %d packages only", packages)
	}
}

// checkExamples requires an example that go test runs. An example that needs a server or a
// testing.T has no output: then TestExample must run its code.
func (p *parsed) checkExamples(t *testing.T, dir string) {
	t.Helper()
	for _, x := range p.examples {
		p.runs = p.runs || x.Output != "" || x.EmptyOutput
	}
	switch {
	case len(p.examples) == 0:
		t.Errorf("%s: no example", dir)
	case !p.runs:
		t.Errorf("%s: no example has an output, and there is no TestExample that runs one", dir)
	}
}

// goDoc returns the output of "go doc" for a package.
func goDoc(t *testing.T, dir string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "doc", ".")
	cmd.Dir = filepath.Join("..", dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: go doc: %v: %s", dir, err, out)
	}
	return out
}
