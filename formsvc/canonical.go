package formsvc

import (
	"slices"
	"unicode/utf16"
)

// CanonicalAnswers returns the answers in the canonical form of RFC 8785 (JCS), to be hashed or
// signed. Clients can build it from the field "responses" of the API in four steps:
//
//  1. Build an object with one member for each module. Each value is an object with the one member
//     "value": an array of strings, in their order.
//  2. Sort the members by name, comparing UTF-16 code units, as sort() does in JavaScript. (Code
//     points or bytes of UTF-8 order U+E000 to U+FFFF differently from characters above U+FFFF.)
//  3. Write it without white space. In strings, escape the quotation mark and the backslash with a
//     backslash. Write \b \t \n \f \r for these five, and \u00xx in lower case for the other
//     characters below U+0020. Write everything else unchanged.
//  4. Encode it in UTF-8, without Unicode normalization.
//
// Without answers it is {}. In JavaScript:
//
//	"{" + Object.keys(responses).sort().map(name =>
//	    JSON.stringify(name) + ":" + JSON.stringify({value: responses[name].value})).join(",") + "}"
//
// The result is nil if [StoredAnswers] was given an invalid text.
func CanonicalAnswers(a Answers) []byte {
	b, err := canonicalAnswers(a)
	if err != nil {
		return nil
	}
	return b
}

func canonicalAnswers(a Answers) ([]byte, error) {
	list, err := a.List()
	if err != nil {
		return nil, err
	}
	type member struct {
		Answer
		order []uint16
	}
	members := make([]member, len(list))
	for i := range list {
		members[i] = member{list[i], utf16.Encode([]rune(list[i].Name))}
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.order, b.order) })
	b := append(make([]byte, 0, len(a.text)+2), '{')
	for i := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCanonical(b, members[i].Name)
		b = append(b, `:{"value":[`...)
		for n, value := range members[i].Value {
			if n > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, value)
		}
		b = append(b, ']', '}')
	}
	return append(b, '}'), nil
}

// appendCanonical appends s, which must be UTF-8, as a JSON string in the form of RFC 8785
// §3.2.2.2.
func appendCanonical(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			} else {
				b = append(b, c)
			}
		}
	}
	return append(b, '"')
}
