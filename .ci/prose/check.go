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
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A document is what is measured of one Markdown file.
type document struct {
	name            string
	words           int // 0 if it isn't counted
	grade           float64
	median, longest int
}

// A report is what a check found.
type report struct {
	documents []document
	words     int // of the documents that are counted
	failures  []string
	hints     []string
}

// A hit is a forbidden phrase at a place.
type hit struct {
	phrase int // index in phrases
	where  string
	text   string
}

// check reads the tree below root.
func check(root string) (*report, error) {
	var names []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			hidden := strings.HasPrefix(base, ".") && base != ".ci" && name != root
			if hidden || slices.Contains([]string{"node_modules", "testdata", "dist", "formsvc-data"}, base) {
				return fs.SkipDir
			}
			return nil
		}
		name, err = filepath.Rel(root, name)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return nil, err
	}

	r := &report{}
	var hits []hit
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var failed error
	for _, name := range names {
		if !isText(name) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			text, err := os.ReadFile(filepath.Join(root, name))
			var found []hit
			var d document
			switch {
			case err != nil:
			case strings.HasSuffix(name, ".md"):
				found = searchDocument(name, string(text))
				d = measure(name, string(text))
			case strings.HasSuffix(name, ".go"):
				found, err = searchGo(name, string(text))
			default:
				found = searchParagraphs(name, string(text))
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			if d.name != "" {
				r.documents = append(r.documents, d)
			}
			hits = append(hits, found...)
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, failed
	}
	slices.SortFunc(r.documents, func(a, b document) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(hits, func(a, b hit) int { return strings.Compare(a.where, b.where) })
	r.judgeDocuments()
	r.judgeHits(hits)
	return r, nil
}

func isText(name string) bool {
	if slices.Contains(ignored, name) {
		return false
	}
	return slices.Contains([]string{".md", ".go", ".html", ".tmpl", ".yaml", ".yml"}, filepath.Ext(name))
}

func measure(name, text string) document {
	d := document{name: name, words: countWords(text)}
	d.grade, d.median, d.longest = readability(sentencesOf(text))
	return d
}

func (r *report) failf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
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
		l, ok := exceptions[d.name]
		if !ok {
			l = limits{grade: maxGrade, median: maxMedian, longest: maxLongest}
		} else if d.grade <= maxGrade && d.median <= maxMedian && d.longest <= maxLongest {
			r.hints = append(r.hints, d.name+" needs no exception any more")
		}
		if d.grade > l.grade {
			r.failf("%s: Flesch–Kincaid grade %.1f, %.1f at most: use shorter words and sentences", d.name, d.grade, l.grade)
		}
		if d.median > l.median {
			r.failf("%s: the median sentence has %d words, %d at most", d.name, d.median, l.median)
		}
		if d.longest > l.longest {
			r.failf("%s: the longest sentence has %d words, %d at most", d.name, d.longest, l.longest)
		}
	}
	switch {
	case r.words > maxWords:
		r.failf("the documents have %d words, %d at most: cut what you replace", r.words, maxWords)
	case r.words < maxWords-1000:
		r.hints = append(r.hints, fmt.Sprintf("the documents have %d words: lower maxWords in .ci/prose/rules.go", r.words))
	}
}

func (r *report) judgeHits(hits []hit) {
	for i, p := range phrases {
		var mine []hit
		for _, h := range hits {
			if h.phrase == i {
				mine = append(mine, h)
			}
		}
		if len(mine) < p.allowed {
			r.hints = append(r.hints, fmt.Sprintf("%s: %d left: lower its number in .ci/prose/rules.go from %d", p.pattern, len(mine), p.allowed))
		}
		if len(mine) <= p.allowed {
			continue
		}
		for _, h := range mine {
			r.failf("%s: %q: %s", h.where, h.text, p.instead)
		}
		if p.allowed > 0 {
			r.failf("%s: %d of them, %d allowed", p.pattern, len(mine), p.allowed)
		}
	}
}

// searchDocument looks at the paragraphs of a Markdown text, outside of its code blocks.
func searchDocument(name, text string) []hit {
	return searchParagraphs(name, withoutCode(text))
}

var paragraphEnd = regexp.MustCompile(`\n(?:[ \t]*\n|[ \t]*(?:[-*+]|\d+\.)[ \t]|\||#)`)

func searchParagraphs(name, text string) []hit {
	var hits []hit
	from := 0
	search := func(to int) {
		if part := text[from:to]; strings.TrimSpace(part) != "" {
			hits = append(hits, searchChunk(name, part, 1+strings.Count(text[:from], "\n"))...)
		}
		from = to
	}
	for _, m := range paragraphEnd.FindAllStringIndex(text, -1) {
		search(m[0] + 1)
	}
	search(len(text))
	return hits
}

var marker = regexp.MustCompile(`(?m)^[ \t]*//|^[ \t]*/\*|\*/`)

// searchGo looks at the comments and strings of a Go file that nobody generated.
func searchGo(name, text string) ([]hit, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	var hits []hit
	search := func(from, to token.Pos, clean func(string) string) {
		begin, end := fset.Position(from), fset.Position(to)
		chunk := clean(text[begin.Offset:end.Offset])
		found := searchChunk(name, chunk, begin.Line)
		if len(found) > 0 && !strings.Contains(lines[begin.Line-1]+lines[end.Line-1], excuse) {
			hits = append(hits, found...)
		}
	}
	for _, group := range file.Comments {
		search(group.Pos(), group.End(), func(s string) string { return marker.ReplaceAllStringFunc(s, blank) })
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			search(lit.Pos(), lit.End(), func(s string) string { return " " + s[1:len(s)-1] + " " })
		}
		return true
	})
	return hits, nil
}

// searchChunk looks for phrases in a paragraph, comment or string whose first line has a number.
func searchChunk(name, chunk string, line int) []hit {
	var hits []hit
	lines := strings.Split(strings.TrimSuffix(chunk, "\n"), "\n")
	if strings.Contains(lines[0]+lines[len(lines)-1], excuse) {
		return nil
	}
	lower := strings.ToLower(chunk)
	for i, p := range phrases {
		if !slices.ContainsFunc(p.keys, func(key string) bool { return strings.Contains(lower, key) }) {
			continue
		}
		for _, m := range p.re.FindAllStringIndex(chunk, -1) {
			rest := chunk[m[1]:]
			if p.unlessAsked && strings.HasPrefix(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \t\n,'’“”\"`-/()%_"), "?") {
				continue
			}
			at := m[0] + len(chunk[m[0]:m[1]]) - len(strings.TrimLeft(chunk[m[0]:m[1]], " \t\n.!?;:"))
			k := strings.Count(chunk[:at], "\n")
			if strings.Contains(lines[min(k, len(lines)-1)], excuse) {
				continue
			}
			hits = append(hits, hit{phrase: i, where: fmt.Sprintf("%s:%d", name, line+k), text: strings.Join(strings.Fields(chunk[m[0]:m[1]]), " ")})
		}
	}
	return hits
}
