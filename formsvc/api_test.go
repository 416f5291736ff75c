package formsvc_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update", false, "write api.txt")

// TestExportedAPI compares the exported declarations of all packages that others may import with ../.ci/api.txt, so that a
// change of them is chosen: go test ./formsvc -run ExportedAPI -update
func TestExportedAPI(t *testing.T) {
	t.Parallel()
	var api bytes.Buffer
	for line := range strings.Lines(goList(t, module+"...")) {
		name := strings.TrimPrefix(strings.TrimSpace(line), module)
		if !isLeaf(name) && !strings.Contains(name, "internal/") && name != "examples" {
			api.WriteString("package " + name + "\n\n" + exported(t, filepath.Join("..", name)))
		}
	}
	const golden = "../.ci/api.txt"
	if *updateAPI {
		noError(t, os.WriteFile(golden, api.Bytes(), 0o600))
	}
	want := must(os.ReadFile(golden))
	old, now := strings.Split(string(want), "\n"), strings.Split(api.String(), "\n")
	for _, line := range old {
		if !slices.Contains(now, line) {
			t.Errorf("the exported API lacks: %s", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			t.Errorf("the exported API has: %s", line)
		}
	}
	if !bytes.Equal(want, api.Bytes()) {
		t.Error("if that is meant: go test ./formsvc -run ExportedAPI -update")
	}
}

// exported returns the exported declarations of the package in a directory, sorted, without comments and bodies.
func exported(t *testing.T, dir string) string {
	t.Helper()
	files := must(filepath.Glob(filepath.Join(dir, "*.go")))
	var list []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file := must(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))
		ast.FileExports(file)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				if f.Body = nil; f.Recv != nil && !ast.IsExported(strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*")) {
					continue
				}
			}
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			var text bytes.Buffer
			noError(t, printer.Fprint(&text, fset, decl))
			list = append(list, strings.ReplaceAll(text.String(), "\n\n", "\n"))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n") + "\n"
}
