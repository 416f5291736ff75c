package main

import (
	"regexp"
	"strings"
)

// The limits of STYLE.md. They only fall.
const (
	maxWords   = 18_000 // all documents together, but for those that are not counted
	maxMedian  = 16     // words in a sentence
	maxLongest = 30     // words in any sentence
)

// excuse is what a line says that has a good reason for a phrase.
const excuse = "prose:ok"

// ignored are files that are not looked at.
var ignored = []string{
	"STYLE.md", ".ci/prose/rules.go", ".ci/prose/prose_test.go", // they name what is forbidden
}

// uncounted are documents whose words don't count.
var uncounted = []string{
	"CHANGELOG.md",                 // it grows with each release
	"cmd/formsvc/CONFIGURATION.md", // generated
}

// unmeasured are documents that are no prose.
var unmeasured = []string{
	"cmd/formsvc/CONFIGURATION.md",
}

// wordLimits are limits of single documents.
var wordLimits = map[string]int{
	"README.md": 700,
}

// A phrase is what a text should not say.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// noQuestion is the rest of a sentence that is no question.
const noQuestion = `[^.!?]*(?:[^.!?]$|[.!])`

var phrases = []phrase{
	{saying(`\b[Ww]hoever\b`), `say "anyone who", "callers" or "you"`},
	{saying(`(?:^\s*|[.!?]\s+)Who\s+\w+` + noQuestion), "name the subject"},
	{saying(`(?:^\s*|[.!?]\s+)What\s+(?:is|was|are|has|can't|isn't|doesn't)\s+\w+` + noQuestion), "name the subject"},
	{saying(`\b[Ll]inks? nothing of\b`), `say "isn't linked in"`},
	{saying(`\bno way back\b`), `say "can't be undone"`},
	{saying(`\banew\b`), `say "again" or "resets"`},
	{saying(`\bin force\b`), `say "active" or "in effect"`},
	{saying(`\b(?:bad|stray) members?\b`), `say "invalid field" or "unknown field"`},
	{saying(`\bunits? of work\b`), `say "transaction"`},
	{saying(`\bheaders? of (?:its|their|your) own\b`), `say "custom headers"`},
	{saying("\\b[Dd]ecide on .?code\\b"), "say \"branch on `code`\""},
	{saying(`\b[Pp]lant(?:s|ed|ing)? (?:a )?bugs?\b`), `say "mutation test" or "mutant"`},
	{saying(`\bcounts? as 1000\b`), `say "is clamped"`},
	{saying(`\b[Nn]one\b[^.]*\bis like that\b`), `say "matches"`},
	{saying(`\bnot more than\b`), `say "at most"`},
	{saying(`\bon probation\b`), `say "half-open"`},
	{saying(`\bturn(?:s|ed|ing)? away\b`), `say "refuse" or "reject"`},
	{saying(`\bin the (?:place|stead) of\b`), `say "instead of"`},
	{saying(`\bfor want of\b`), `say "because … is missing"`},
	{saying(`\b(?:thereof|wherein|whereby|hereby|thereby|therein|whither|hither|lest)\b`), "use a modern word"},
	{saying(`\b(?:[Hh]e|him|[Hh]is)\b`), `say "they", "the caller" or "you"`},
	{saying(`\bfor ever\b`), `say "forever" or "endlessly"`},
	{saying(`\btells? of\b`), `say "reports"`},
	{saying(`\b[Ww]hat waits\b`), `say "backlog"`},
	{saying(`\bbut for\b`), `say "except"`},
	{saying(`\b[Hh]ow long answers take\b`), `say "response time"`},
	{saying(`\bin vain\b`), `say "without success"`},
	{saying(`\b[Ss]imply\b`), "leave it out"},
	{saying(`\b[Pp]lease\b`), "leave it out"},
	{saying(`(?:^\s*|[.!?]\s+)Note that\b`), "leave it out"},
}

// saying compiles a pattern, whose spaces match any white space.
func saying(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(pattern, " ", `\s+`))
}
