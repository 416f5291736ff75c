package formsvc_test

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fences = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	code   = regexp.MustCompile("`[^`\n]*`")
	links  = regexp.MustCompile(`(?:\]\(|\]: |src="|href=")([^)\s"]+)`)
	titles = regexp.MustCompile(`(?m)^#+ +(.*?)[ #]*$`)
)

// TestLinks checks that every link in every Markdown file points to an existing file, directory and
// heading of the tree. Links to other hosts aren't checked.
func TestLinks(t *testing.T) {
	t.Parallel()
	followed := 0
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".md") {
			return
		}
		text := code.ReplaceAllString(fences.ReplaceAllString(read(t, name), ""), "")
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: link %q: %v", name, m[1], err)
				continue
			}
			if u.IsAbs() || u.Host != "" {
				continue
			}
			followed++
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			if info, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s: link %q: there is no %s", name, m[1], target)
			} else if u.Fragment != "" && !info.IsDir() && !slices.Contains(anchors(read(t, target)), u.Fragment) {
				t.Errorf("%s: link %q: %s has no such heading", name, m[1], target)
			}
		}
	})
	if followed < 50 {
		t.Errorf("found %d links only", followed)
	}
}

// anchors returns GitHub's fragments for the headings of a text.
func anchors(text string) []string {
	var list []string
	for _, m := range titles.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return list
}

var (
	nodes  = regexp.MustCompile(`(?m)^\s*(\w+)\["([^"<]+)`)
	arrow  = regexp.MustCompile(`(?m)^\s*(\w+(?: --> \w+)+)$`)
	tests  = regexp.MustCompile("`(Test\\w+)`")
	export = regexp.MustCompile("`(\\w+)\\.([A-Z]\\w*)`")
)

// TestArchitecture compares ARCHITECTURE.md with the tree: the packages of its picture and their
// imports, tests, and exported names. TestLinks checks its links.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	text := read(t, "ARCHITECTURE.md")

	names := make(map[string]string) // packages by their names in the picture
	for _, m := range nodes.FindAllStringSubmatch(text, -1) {
		names[m[1]] = m[2]
	}
	imports := make(map[string][]string)
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...")) {
		words := strings.Fields(line)
		imports[strings.TrimPrefix(words[0], module)] = words[1:]
	}
	edges := 0
	for _, m := range arrow.FindAllStringSubmatch(text, -1) {
		chain := strings.Split(m[1], " --> ")
		for i, to := range chain[1:] {
			from := names[chain[i]]
			edges++
			if !slices.Contains(imports[from], module+names[to]) {
				t.Errorf("the picture has %s import %s, which it doesn't", from, names[to])
			}
		}
	}

	sources := make(map[string]string) // the text of packages by their last names
	functions := make(map[string]bool)
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		source := read(t, name)
		if !strings.HasSuffix(name, "_test.go") {
			sources[path.Base(path.Dir(name))] += source
			return
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(source, -1) {
			functions[m[1]] = true
		}
	})
	held := tests.FindAllStringSubmatch(text, -1)
	for _, m := range held {
		if !functions[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	exported := export.FindAllStringSubmatch(text, -1)
	for _, m := range exported {
		if !regexp.MustCompile(`(?m)^(type|func) ` + m[2] + `\b`).MatchString(sources[m[1]]) {
			t.Errorf("there is no %s.%s", m[1], m[2])
		}
	}
	if edges < 10 || len(held) < 10 || len(exported) == 0 {
		t.Errorf("found %d imports, %d tests and %d names only", edges, len(held), len(exported))
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := must(os.ReadFile(filepath.Join("..", name)))
	return string(text)
}
