package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	comments   = regexp.MustCompile(`(?s)<!--.*?-->`)
	tags       = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
	images     = regexp.MustCompile(`!\[([^\]]*)\]\([^)]*\)`)
	linked     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	addresses  = regexp.MustCompile(`<?https?://[^\s>)]+>?`)
	codeSpans  = regexp.MustCompile("`[^`]*`")
	emphasis   = regexp.MustCompile(`\*+`)
	listItem   = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	abbrev     = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs|approx|No)\.`)
	sentences  = regexp.MustCompile(`[.!?]["')\]]*\s+`)
	fenceStart = regexp.MustCompile("^\\s*(?:>\\s*)?(```+|~~~+)")
)

// blank replaces the bytes of s with spaces, except line ends, so that offsets and line numbers stay.
func blank(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// withoutCode blanks the fenced code and the HTML comments of a Markdown text.
func withoutCode(text string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		m := fenceStart.FindStringSubmatch(line)
		switch {
		case fence == "" && m != nil:
			fence = m[1]
			line = blank(line)
		case fence != "":
			if m != nil && strings.HasPrefix(m[1], fence) {
				fence = ""
			}
			line = blank(line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// proseOf returns a Markdown text without code blocks and comments, and with the texts of its links and images alone.
func proseOf(text string) string {
	text = comments.ReplaceAllStringFunc(withoutCode(text), blank)
	return linked.ReplaceAllString(images.ReplaceAllString(text, " $1 "), "$1")
}

// countWords returns how many words a Markdown text has: what is between spaces outside of code blocks and comments, with a letter or
// a digit in it. The target of a link is no word.
func countWords(text string) int {
	return len(wordsOf(strings.ReplaceAll(tags.ReplaceAllString(proseOf(text), " "), "|", " ")))
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sentencesOf returns the sentences of a Markdown text's paragraphs and lists. Headings, tables and code blocks have none; a span of
// code or an address counts as one short word.
func sentencesOf(text string) []string {
	var list []string
	var block strings.Builder
	end := func() {
		s := codeSpans.ReplaceAllString(block.String(), "code")
		block.Reset()
		s = addresses.ReplaceAllString(tags.ReplaceAllString(s, " "), "code")
		s = emphasis.ReplaceAllString(s, "")
		s = abbrev.ReplaceAllString(s, "$1")
		from := 0
		for _, m := range sentences.FindAllStringIndex(s, -1) {
			list = append(list, s[from:m[1]])
			from = m[1]
		}
		list = append(list, s[from:])
	}
	for line := range strings.Lines(proseOf(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|"):
			end()
		case listItem.MatchString(line):
			end()
			block.WriteString(listItem.ReplaceAllString(line, ""))
		default:
			block.WriteString(strings.TrimPrefix(line, ">"))
		}
	}
	end()
	return slices.DeleteFunc(list, func(s string) bool { return len(wordsOf(s)) == 0 })
}

func wordsOf(sentence string) []string {
	return slices.DeleteFunc(strings.Fields(sentence), func(w string) bool { return !strings.ContainsFunc(w, isAlnum) })
}

// lengths returns the median length of sentences in words, and the longest one's.
func lengths(list []string) (median, longest int) {
	if len(list) == 0 {
		return 0, 0
	}
	words := make([]int, len(list))
	for i, s := range list {
		words[i] = len(wordsOf(s))
	}
	slices.Sort(words)
	return words[len(words)/2], words[len(words)-1]
}
