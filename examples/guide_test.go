package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuideShowsTheExamples compares the Go code of the guide with the programs: a block that is a whole file must be one of
// theirs, and any other block must be part of one.
func TestGuideShowsTheExamples(t *testing.T) {
	t.Parallel()
	guide := read(t, "README.md")
	sources := make(map[string]string)
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		sources[file] = read(t, file)
	}
	blocks := regexp.MustCompile("(?s)\n```go\n(.*?\n)```\n").FindAllStringSubmatch(guide, -1)
	if len(blocks) < 9 {
		t.Errorf("%d blocks of Go in the guide: were some not found?", len(blocks))
	}
	isFile := regexp.MustCompile(`^// (\w+\.go)\n`)
	for _, block := range blocks {
		found := false
		name := isFile.FindStringSubmatch(block[1])
		for file, source := range sources {
			if name != nil {
				found = found || filepath.Base(file) == name[1] && block[1] == name[0]+source
			} else {
				found = found || strings.Contains(plain(source), plain(block[1]))
			}
		}
		if !found {
			t.Errorf("the guide has what no example has:\n%s", block[1])
		}
	}
}

// plain returns lines without their indentation, and without empty ones.
func plain(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n" + line)
		}
	}
	return b.String() + "\n"
}

// TestGuideNamesTheExamples checks that the guide lists every directory, and that the programs are short.
func TestGuideNamesTheExamples(t *testing.T) {
	t.Parallel()
	guide := read(t, "README.md")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if !strings.Contains(guide, "\n| ["+entry.Name()+"]("+entry.Name()) {
			t.Errorf("%s is not in the list of the guide", entry.Name())
		}
		main, err := os.ReadFile(filepath.Join(entry.Name(), "main.go"))
		most := 80
		if entry.Name() == "host" { // the whole of a product
			most = 120
		}
		if lines := strings.Count(string(main), "\n"); lines >= most || err != nil && !os.IsNotExist(err) {
			t.Errorf("%s/main.go has %d lines, want fewer than %d (%v)", entry.Name(), lines, most, err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
