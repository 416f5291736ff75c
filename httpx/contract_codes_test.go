package httpx_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources returns the parsed files of the package, without its tests.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// The document has exactly the problem codes of the source.
func TestOpenAPICodes(t *testing.T) {
	c := theContract(t)
	documented := map[string]bool{}
	if strings.Contains((node{c, "", c.root}).get("info", "description").text(), "`method_not_allowed`") {
		documented["method_not_allowed"] = true // belongs to no operation
	}
	for _, o := range c.operations {
		for status, a := range o.answers {
			for _, code := range a.codes {
				documented[code] = true
			}
			if (len(a.codes) > 0) != (status >= 400) {
				t.Errorf("%s %d: codes %q", o.id, status, a.codes)
			}
		}
	}
	finder := &codeFinder{t: t, found: map[string]bool{}}
	for _, file := range sources(t) {
		for _, d := range file.Decls {
			finder.function = ""
			if f, ok := d.(*ast.FuncDecl); ok {
				finder.function = f.Name.Name
			}
			ast.Inspect(d, finder.look)
		}
	}
	delete(finder.found, "client_gone") // no client sees it
	delete(finder.found, "conflict")    // of stores; what clients can cause has its own codes
	if len(finder.found) < 10 {
		t.Errorf("only %d codes found in the source", len(finder.found))
	}
	for _, code := range slices.Sorted(maps.Keys(finder.found)) {
		if !documented[code] {
			t.Errorf("the code %s is not documented", code)
		}
		delete(documented, code)
	}
	for _, code := range slices.Sorted(maps.Keys(documented)) {
		t.Errorf("the code %s is documented, but not in the source", code)
	}
}

// A codeFinder collects the problem codes in the source.
type codeFinder struct {
	t        *testing.T
	function string // the enclosing one
	found    map[string]bool
}

func (f *codeFinder) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if isIdent(n.Type, "problem") {
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok && isIdent(pair.Key, "code") {
					f.add(pair.Value)
				}
			}
		}
		if array, ok := n.Type.(*ast.ArrayType); ok && isIdent(array.Elt, "kind") {
			for _, e := range n.Elts {
				if row, ok := e.(*ast.CompositeLit); ok && len(row.Elts) == 4 {
					f.add(row.Elts[2])
				} else {
					f.t.Errorf("a row of kinds that this test doesn't understand")
				}
			}
		}
	case *ast.CallExpr:
		method, _ := n.Fun.(*ast.SelectorExpr)
		if isIdent(n.Fun, "badRequest") || method != nil && method.Sel.Name == "fail" && len(n.Args) == 3 {
			f.add(n.Args[0])
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "code" && len(n.Rhs) == len(n.Lhs) {
				f.add(n.Rhs[i])
			}
		}
	}
	return true
}

// add records a code. It may be other than a literal only where a function passes it on.
func (f *codeFinder) add(e ast.Expr) {
	if literal, ok := e.(*ast.BasicLit); ok {
		code, err := strconv.Unquote(literal.Value)
		if err != nil {
			f.t.Error(err)
		}
		f.found[code] = true
		return
	}
	if f.function != "badRequest" && f.function != "fail" && f.function != "problemOf" {
		f.t.Errorf("in %s a code is no literal, so this test can't find it", f.function)
	}
}

func isIdent(n ast.Node, name string) bool {
	ident, ok := n.(*ast.Ident)
	return ok && ident.Name == name
}

// parameterNames returns the query parameters in the source.
func parameterNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range sources(t) {
		for _, d := range file.Decls {
			v, ok := d.(*ast.GenDecl)
			if !ok || v.Tok != token.VAR || v.Specs[0].(*ast.ValueSpec).Names[0].Name != "rules" { //nolint:forcetypeassert // a var declaration
				continue
			}
			ast.Inspect(v, func(n ast.Node) bool {
				if row, ok := n.(*ast.KeyValueExpr); ok {
					if literal, ok := row.Key.(*ast.BasicLit); ok {
						name, _ := strconv.Unquote(literal.Value)
						names = append(names, name)
					}
				}
				return true
			})
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %q found in rules", names)
	}
	return names
}
