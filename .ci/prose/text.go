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
	vowels     = regexp.MustCompile(`[aeiouy]+`)
	hiatus     = regexp.MustCompile(`[^tscg]i[ao]|creat|eo`) // two vowels that are spoken apart
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

// countWords returns how many words a Markdown text has: what is between spaces outside of code blocks and comments, with a letter or
// a digit in it. The target of a link is no word.
func countWords(text string) int {
	text = comments.ReplaceAllStringFunc(withoutCode(text), blank)
	text = linked.ReplaceAllString(images.ReplaceAllString(text, " $1 "), "$1")
	text = tags.ReplaceAllString(text, " ")
	n := 0
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, "|", " ")) {
		if strings.ContainsFunc(word, isAlnum) {
			n++
		}
	}
	return n
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sentencesOf returns the sentences of a Markdown text's paragraphs and lists. Headings, tables and code blocks have none; a span of
// code or an address counts as one short word.
func sentencesOf(text string) []string {
	text = comments.ReplaceAllStringFunc(withoutCode(text), blank)
	var list []string
	var block strings.Builder
	end := func() {
		s := block.String()
		block.Reset()
		s = linked.ReplaceAllString(images.ReplaceAllString(s, " "), "$1")
		s = codeSpans.ReplaceAllString(s, "code")
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
	for line := range strings.Lines(text) {
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

// readability returns the Flesch–Kincaid grade of sentences, their median length in words and the longest one's.
func readability(list []string) (grade float64, median, longest int) {
	if len(list) == 0 {
		return 0, 0, 0
	}
	var lengths []int
	words, syllables := 0, 0
	for _, s := range list {
		ws := wordsOf(s)
		lengths = append(lengths, len(ws))
		words += len(ws)
		for _, w := range ws {
			syllables += syllablesOf(w)
		}
	}
	slices.Sort(lengths)
	grade = 0.39*float64(words)/float64(len(list)) + 11.8*float64(syllables)/float64(words) - 15.59
	return grade, lengths[len(lengths)/2], lengths[len(lengths)-1]
}

// syllablesOf counts groups of vowels, less a silent e. A number or a name in capitals counts as one.
func syllablesOf(word string) int {
	n := 0
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
		lower := strings.ToLower(part)
		if part == strings.ToUpper(part) {
			n++
			continue
		}
		k := len(vowels.FindAllString(lower, -1)) + len(hiatus.FindAllString(lower, -1))
		switch {
		case strings.HasSuffix(lower, "le") && len(lower) > 2 && !strings.ContainsRune("aeiouy", rune(lower[len(lower)-3])):
		case strings.HasSuffix(lower, "e"), strings.HasSuffix(lower, "es") && !hissing(lower[:len(lower)-2]),
			strings.HasSuffix(lower, "ed") && !strings.HasSuffix(lower, "ted") && !strings.HasSuffix(lower, "ded"):
			k--
		}
		n += max(k, 1)
	}
	return max(n, 1)
}

// hissing reports whether -es is spoken after a stem.
func hissing(stem string) bool {
	for _, end := range []string{"s", "x", "z", "ch", "sh", "c", "g"} {
		if strings.HasSuffix(stem, end) {
			return true
		}
	}
	return false
}
