package formsvc_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTableOfPackages compares the table of packages in ARCHITECTURE.md with the tree.
func TestTableOfPackages(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		parent := "" // directory of the names after the first
		for i, part := range strings.Split(cells[2], "`") {
			if i%2 == 0 {
				continue
			}
			dir := path.Join(parent, part)
			parent = path.Dir(dir)
			named = append(named, dir)
			if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
				t.Errorf("ARCHITECTURE.md: there is no %s", dir)
			}
		}
	}
	for line := range strings.Lines(goList(t, "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", module+"...")) {
		dir := strings.TrimPrefix(strings.TrimSpace(line), module)
		if !isLeaf(dir) && !slices.Contains(strings.Split(dir, "/"), "internal") && !slices.Contains(named, dir) {
			t.Errorf("ARCHITECTURE.md: its table of packages lacks %s", dir)
		}
	}
}

// walk calls visit with the path of every file of the tree, relative to its root, except tools'
// files.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	noError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".ci"
		switch {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case !d.IsDir():
			name, err = filepath.Rel("..", name)
			visit(filepath.ToSlash(name))
		}
		return err
	}))
}
