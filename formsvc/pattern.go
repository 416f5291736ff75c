package formsvc

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Limits of patterns. They keep a comparison short, which takes as many steps as a value has bytes, times the size of the pattern.
const (
	maxPattern     = 500
	maxPatternSize = 1_000
	maxPatterns    = 100        // of a campaign
	maxCompared    = 50_000_000 // steps for the answers of a response
)

// A pattern is a compiled [Module].Pattern.
type pattern struct {
	*regexp.Regexp
	size int
}

// newPattern compiles an expression. One that is too large when its repetitions are written out is an error.
func newPattern(expression string) (*pattern, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternSize(tree)
	if size > maxPatternSize {
		return nil, &syntax.Error{Code: syntax.ErrLarge, Expr: expression}
	}
	re, err := regexp.Compile(expression)
	if err == nil {
		re.Longest() // so that the match at the beginning is the whole value if there is such a match
	}
	return &pattern{re, size}, err
}

// patternSize returns about how many instructions an expression takes.
func patternSize(tree *syntax.Regexp) int {
	size := 1
	if tree.Op == syntax.OpLiteral {
		size = len(tree.Rune)
	}
	for _, part := range tree.Sub {
		size += patternSize(part)
	}
	if tree.Op == syntax.OpRepeat {
		size = (size - 1) * max(tree.Min, tree.Max, 1)
	}
	return min(size, maxPatternSize+1)
}

// Check returns why the module doesn't accept a value, as in a [FieldError], or "".
func (m *Module) Check(value string) (code, detail string) {
	if code, detail = m.checkType(value); code == "" {
		code, detail = new(ValidationError).matches(m, value)
	}
	return code, detail
}

// matches returns why a value doesn't match the pattern of the module, or "". An empty value has none.
func (e *ValidationError) matches(m *Module, value string) (code, detail string) {
	if m.Pattern == "" || value == "" {
		return "", ""
	}
	p := e.patterns[m.Pattern]
	if p == nil {
		var err error
		if p, err = newPattern(m.Pattern); err != nil {
			return "", "" // checkPattern tells
		}
		if e.patterns == nil {
			e.patterns = make(map[string]*pattern)
		}
		e.patterns[m.Pattern] = p
	}
	if e.steps += p.size * len(value); e.steps > maxCompared {
		return "too_long", "is too long to be compared with the pattern"
	}
	if at := p.FindStringIndex(value); at == nil || at[0] > 0 || at[1] < len(value) {
		return "pattern_mismatch", cmp.Or(m.PatternHelp, "must match the pattern "+m.Pattern)
	}
	return "", ""
}

// checkPattern notes what is wrong with the pattern of a module, which is the count-th of the campaign.
func (e *ValidationError) checkPattern(pointer string, m *Module, count int) {
	e.checkLine(pointer+"/patternHelp", m.PatternHelp, maxPattern)
	e.misplaced(m.PatternHelp != "" && m.Pattern == "", pointer+"/patternHelp", "applies to modules with a pattern only")
	e.checkLine(pointer+"/pattern", m.Pattern, maxPattern)
	if m.Pattern == "" || utf8.RuneCountInString(m.Pattern) > maxPattern {
		return
	}
	switch _, err := newPattern(m.Pattern); {
	case !m.Type.Typed():
		e.add(pointer+"/pattern", "not_applicable", "applies to text, longtext, email, url and phone only")
	case count > maxPatterns:
		e.add(pointer+"/pattern", "too_many", "is one too many: a campaign may have %d", maxPatterns)
	case err != nil:
		e.add(pointer+"/pattern", "invalid_value", "must be a regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
}
