package settings

import (
	"slices"
	"unicode/utf8"
)

// A budget is how many bytes of HTML the records of a page may still have, so that the
// page has 150 KB at most, whatever is stored: a text is counted as html/template writes
// it, which may be five times as long as the text itself.
type budget struct {
	left int
	kept int // of these, for what comes later
}

// take takes so many bytes, or reports that there are fewer.
func (b *budget) take(n int) bool {
	if n > b.left-b.kept {
		return false
	}
	b.left -= n
	return true
}

// text takes as much of a text as there is room for, and reports whether that is all.
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

// newest returns those of the records, which are newest first, that there is room for,
// oldest first: as people read them.
func newest[T any](b *budget, list []T, cost func(*T) int) []T {
	n := 0
	for n < len(list) && b.take(cost(&list[n])) {
		n++
	}
	list = list[:n]
	slices.Reverse(list)
	return list
}

// escaped returns how many bytes texts have in a page.
func escaped(texts ...string) int {
	n := 0
	for _, s := range texts {
		n += len(s)
		for i := range len(s) {
			switch s[i] {
			case '<', '>':
				n += len("&lt;") - 1
			case '&', '"', '\'', '+':
				n += len("&amp;") - 1
			case 0:
				n += utf8.RuneLen(utf8.RuneError) - 1
			}
		}
	}
	return n
}
