package console

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A budget is the number of bytes of HTML left for the records of a page, so that the page has at most 150 KB, whatever
// is stored. A text counts by its length after escaping by html/template, which may be five times its own.
type budget struct {
	left int
	kept int // part of it reserved for later records
}

// take takes n bytes, or reports that fewer are left.
func (b *budget) take(n int) bool {
	if n > b.left-b.kept {
		return false
	}
	b.left -= n
	return true
}

// text takes as much of a text as fits, and reports whether all of it did.
func (b *budget) text(s string) (shown string, all bool) {
	for end := 0; end < len(s); {
		_, size := utf8.DecodeRuneInString(s[end:])
		if !b.take(escaped(s[end : end+size])) {
			return s[:end], false
		}
		end += size
	}
	return s, true
}

// newest returns the newest records that fit, oldest first, as people read them. list is newest first.
func newest[T any](b *budget, list []T, cost func(*T) int) []T {
	n := 0
	for n < len(list) && b.take(cost(&list[n])) {
		n++
	}
	list = list[:n]
	slices.Reverse(list)
	return list
}

// escaped returns about the number of bytes of texts in a page, and no fewer.
func escaped(texts ...string) int {
	n := 0
	for _, s := range texts {
		n += len(s)
		for _, c := range "<>&\"'+\x00" {
			n += strings.Count(s, string(c)) * (len("&amp;") - 1)
		}
	}
	return n
}
