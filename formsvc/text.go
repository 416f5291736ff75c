package formsvc

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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
