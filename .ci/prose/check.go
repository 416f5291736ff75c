package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A document is what is measured of one Markdown file.
type document struct {
	name                   string
	words, median, longest int
}

// A report is what a check found.
type report struct {
	documents []document
	words     int // of the documents that are counted
	failures  []string
}

func (r *report) failf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// check reads the tree below root.
func check(root string) (*report, error) {
	r := &report{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() {
			hidden := strings.HasPrefix(base, ".") && base != ".ci" && path != root
			if hidden || slices.Contains([]string{"node_modules", "testdata", "dist", "formsvc-data"}, base) {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil || slices.Contains(ignored, name) {
			return err
		}
		if !slices.Contains([]string{".md", ".go", ".html", ".tmpl", ".yaml", ".yml"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".md") {
			r.documents = append(r.documents, measure(name, string(text)))
		}
		return r.search(name, string(text))
	})
	r.judgeDocuments()
	return r, err
}

func measure(name, text string) document {
	d := document{name: name, words: countWords(text)}
	d.median, d.longest = lengths(sentencesOf(text))
	return d
}

func (r *report) judgeDocuments() {
	for _, d := range r.documents {
		if !slices.Contains(uncounted, d.name) {
			r.words += d.words
		}
		if most, ok := wordLimits[d.name]; ok && d.words > most {
			r.failf("%s: %d words, %d at most", d.name, d.words, most)
		}
		if slices.Contains(unmeasured, d.name) {
			continue
		}
		if d.median > maxMedian {
			r.failf("%s: the median sentence has %d words, %d at most", d.name, d.median, maxMedian)
		}
		if d.longest > maxLongest {
			r.failf("%s: the longest sentence has %d words, %d at most", d.name, d.longest, maxLongest)
		}
	}
	if r.words > maxWords {
		r.failf("the documents have %d words, %d at most: cut what you replace", r.words, maxWords)
	}
}

var (
	paragraphEnd = regexp.MustCompile(`\n(?:[ \t]*\n|[ \t]*(?:[-*+]|\d+\.)[ \t]|\||#)`)
	marker       = regexp.MustCompile(`(?m)^[ \t]*//|^[ \t]*/\*|\*/`)
)

// search looks for phrases in the comments and strings of a Go file that nobody generated, and in the paragraphs of another file, without
// the code blocks of Markdown.
func (r *report) search(name, text string) error {
	if !strings.HasSuffix(name, ".go") {
		if strings.HasSuffix(name, ".md") {
			text = withoutCode(text)
		}
		from := 0
		for _, m := range append(paragraphEnd.FindAllStringIndex(text, -1), []int{len(text) - 1}) {
			r.searchPart(name, text, from, text[from:m[0]+1])
			from = m[0] + 1
		}
		return nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	part := func(n ast.Node) (int, string) {
		from := fset.Position(n.Pos()).Offset
		return from, text[from:fset.Position(n.End()).Offset]
	}
	for _, group := range file.Comments {
		from, s := part(group)
		r.searchPart(name, text, from, marker.ReplaceAllStringFunc(s, blank))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			from, s := part(lit)
			r.searchPart(name, text, from, " "+s[1:len(s)-1]+" ")
		}
		return true
	})
	return nil
}

// searchPart looks for phrases in a part of a text: a paragraph, comment or string, which begins at an offset.
func (r *report) searchPart(name, text string, from int, part string) {
	for _, p := range phrases {
		for _, m := range p.pattern.FindAllStringIndex(part, -1) {
			found := strings.TrimLeft(part[m[0]:m[1]], " \t\n.!?;:")
			at := from + m[1] - len(found)
			if !excused(text, from) && !excused(text, at) && !excused(text, from+len(part)-1) {
				r.failf("%s:%d: %q: %s", name, 1+strings.Count(text[:at], "\n"), strings.Join(strings.Fields(found), " "), p.instead)
			}
		}
	}
}

// excused reports whether the line at an offset has an excuse.
func excused(text string, at int) bool {
	line, _, _ := strings.Cut(text[strings.LastIndexByte(text[:at], '\n')+1:], "\n")
	return strings.Contains(line, excuse)
}
