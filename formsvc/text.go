package formsvc

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// CheckText returns an error that is [ErrInvalid] if a text isn't UTF-8 or has a NUL character, since not every store
// can keep it. Services check input; stores check again, so that all behave the same.
func CheckText(texts ...string) error {
	for _, s := range texts {
		if _, detail := textFault(s); detail != "" {
			return fmt.Errorf("formsvc: a text %s: %w", detail, ErrInvalid)
		}
	}
	return nil
}

// textFault returns why CheckText refuses a text, or "".
func textFault(s string) (code, detail string) {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "nul_not_allowed", "must not contain the NUL character"
	case !utf8.ValidString(s):
		return "invalid_utf8", "must be UTF-8"
	}
	return "", ""
}

// checkLine notes the faults of a text that may have up to maxRunes characters.
func (e *ValidationError) checkLine(pointer, s string, maxRunes int) {
	if code, detail := textFault(s); code != "" {
		e.add(pointer, code, "%s", detail)
	} else if len(s) > maxRunes && utf8.RuneCountInString(s) > maxRunes {
		e.add(pointer, "too_long", "must have at most %d characters", maxRunes)
	}
}

// checkTitle is checkLine for a text that must not be blank.
func (e *ValidationError) checkTitle(pointer, s string, maxRunes int) {
	if !visible(s) {
		e.add(pointer, "required", "must not be empty")
	}
	e.checkLine(pointer, s, maxRunes)
}

// visible reports whether a text has a character that can be seen. Some blank ones are neither white space nor
// zero-width to Unicode: those that fonts draw as nothing.
func visible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && r != '\u2800' && // BRAILLE PATTERN BLANK
			(!unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
				unicode.Is(unicode.Prepended_Concatenation_Mark, r))
	})
}

// checkName notes the faults of a member's name, and reports whether the pointer to the member may have it: others
// would make the pointer as long as the input, or invalid.
func (e *ValidationError) checkName(parent, what, name string, maxRunes int) bool {
	code, detail := textFault(name)
	switch {
	case name == "":
		e.add(parent+"/", "required", "%s must not be empty", what)
	case code != "":
		e.add(parent, code, "%s %s", what, detail)
		return false
	case len(name) > maxRunes && utf8.RuneCountInString(name) > maxRunes:
		e.add(parent, "too_long", "%s must have at most %d characters", what, maxRunes)
		return false
	}
	return true
}

// pointerEscape escapes a field name for a JSON Pointer (RFC 6901 §3).
func pointerEscape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// FoldEmail returns an address as mail systems compare it: without regard to case and to the normal form of Unicode, and with an
// international domain as Unicode has it. Two addresses belong to one person if it returns the same for both. Stores that
// filter by query must agree with it.
func FoldEmail(s string) string {
	if at := strings.LastIndexByte(s, '@'); strings.Contains(strings.ToLower(s[at+1:]), "xn--") {
		if domain, err := idna.ToUnicode(strings.ToLower(s[at+1:])); err == nil {
			s = s[:at+1] + domain
		}
	}
	return fold(s)
}

// fold returns a text in lower case and in normal form C. It merges only letters that are the same except for case.
func fold(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		if low := unicode.ToLower(least); strings.EqualFold(string(low), string(least)) {
			return low
		}
		return least
	}, norm.NFC.String(s)))
}

// appendText appends a member with the text s; name has its punctuation.
func appendText(b []byte, name, s string) []byte { return appendString(append(b, name...), s) }

// appendOptional is appendText, with null for "".
func appendOptional(b []byte, name, s string) []byte {
	if s == "" {
		return append(append(b, name...), "null"...)
	}
	return appendText(b, name, s)
}

// appendTime appends a member with t as a JSON string in RFC 3339, in UTC with milliseconds and Z; the
// zero time as null.
func appendTime(b []byte, name string, t time.Time) []byte {
	b = append(b, name...)
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339) // much faster than a layout with milliseconds
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-1], '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// appendString appends s as a JSON string in the minimal form of RFC 8785. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendStrings[S ~string](b []byte, list []S) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(s))
	}
	return append(b, ']')
}
