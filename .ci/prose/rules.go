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
	key     string // what a text in lower case has to contain, one of several between bars; it saves time
	pattern string
	instead string
	keys    []string
	re      *regexp.Regexp
}

// noQuestion is the rest of a sentence that is no question.
const noQuestion = `[^.!?]*(?:[^.!?]$|[.!])`

var phrases = compile([]phrase{
	{key: "whoever", pattern: `\b[Ww]hoever\b`, instead: `say "anyone who", "callers" or "you"`},
	{key: "who", pattern: `(?:^\s*|[.!?]\s+)Who\s+\w+` + noQuestion, instead: "name the subject"},
	{key: "what", pattern: `(?:^\s*|[.!?]\s+)What\s+(?:is|was|are|has|can't|isn't|doesn't)\s+\w+` + noQuestion, instead: "name the subject"},
	{key: "nothing", pattern: `\b[Ll]inks? nothing of\b`, instead: `say "isn't linked in"`},
	{key: "way", pattern: `\bno way back\b`, instead: `say "can't be undone"`},
	{key: "anew", pattern: `\banew\b`, instead: `say "again" or "resets"`},
	{key: "force", pattern: `\bin force\b`, instead: `say "active" or "in effect"`},
	{key: "member", pattern: `\b(?:bad|stray) members?\b`, instead: `say "invalid field" or "unknown field"`},
	{key: "work", pattern: `\bunits? of work\b`, instead: `say "transaction"`},
	{key: "own", pattern: `\bheaders? of (?:its|their|your) own\b`, instead: `say "custom headers"`},
	{key: "decide", pattern: "\\b[Dd]ecide on .?code\\b", instead: "say \"branch on `code`\""},
	{key: "plant", pattern: `\b[Pp]lant(?:s|ed|ing)? (?:a )?bugs?\b`, instead: `say "mutation test" or "mutant"`},
	{key: "1000", pattern: `\bcounts? as 1000\b`, instead: `say "is clamped"`},
	{key: "is like that", pattern: `\b[Nn]one\b[^.]*\bis like that\b`, instead: `say "matches"`},
	{key: "more", pattern: `\bnot more than\b`, instead: `say "at most"`},
	{key: "probation", pattern: `\bon probation\b`, instead: `say "half-open"`},
	{key: "turn", pattern: `\bturn(?:s|ed|ing)? away\b`, instead: `say "refuse" or "reject"`},
	{key: "place|stead", pattern: `\bin the (?:place|stead) of\b`, instead: `say "instead of"`},
	{key: "want", pattern: `\bfor want of\b`, instead: `say "because … is missing"`},
	{key: "there|where|here|hither|lest", pattern: `\b(?:thereof|wherein|whereby|hereby|thereby|therein|whither|hither|lest)\b`, instead: "use a modern word"},
	{key: "he|him|his", pattern: `\b(?:[Hh]e|him|[Hh]is)\b`, instead: `say "they", "the caller" or "you"`},
	{key: "for ever", pattern: `\bfor ever\b`, instead: `say "forever" or "endlessly"`},
	{key: "tell", pattern: `\btells? of\b`, instead: `say "reports"`},
	{key: "what waits", pattern: `\b[Ww]hat waits\b`, instead: `say "backlog"`},
	{key: "but for", pattern: `\bbut for\b`, instead: `say "except"`},
	{key: "how long", pattern: `\b[Hh]ow long answers take\b`, instead: `say "response time"`},
	{key: "vain", pattern: `\bin vain\b`, instead: `say "without success"`},
	{key: "simply", pattern: `\b[Ss]imply\b`, instead: "leave it out"},
	{key: "please", pattern: `\b[Pp]lease\b`, instead: "leave it out"},
	{key: "note", pattern: `(?:^\s*|[.!?]\s+)Note that\b`, instead: "leave it out"},
})

func compile(list []phrase) []phrase {
	for i := range list {
		list[i].keys = strings.Split(list[i].key, "|")
		list[i].re = regexp.MustCompile(strings.ReplaceAll(list[i].pattern, " ", `\s+`))
	}
	return list
}
