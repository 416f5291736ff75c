package formsvc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckText returns an error that is [ErrInvalid] if a text isn't UTF-8 or has a NUL character,
// since not every store can keep it. Services check input; stores check again, so that all behave
// the same.
func CheckText(texts ...string) error {
	for _, s := range texts {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("formsvc: text with a NUL character: %w", ErrInvalid)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("formsvc: text that is not UTF-8: %w", ErrInvalid)
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
	if strings.TrimSpace(s) == "" {
		e.add(pointer, "required", "must not be empty")
	}
	e.checkLine(pointer, s, maxRunes)
}

// pointerEscape escapes a field name for a JSON Pointer (RFC 6901 §3).
func pointerEscape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
