package formsvc

import (
	"slices"
	"unicode/utf16"
)

// CanonicalAnswers returns the answers as the one text that everybody gets who
// follows RFC 8785 (JCS), to be hashed or signed. From the member "responses" of
// the API, in any order and spelling, it is made in four steps:
//
//  1. The object has one member for each module, and the value of each is an object
//     with the one member "value": an array of strings, in their order. Nothing
//     else is in it.
//  2. Sort the members by name, comparing UTF-16 code units: as sort() does in
//     JavaScript. (Code points or bytes of UTF-8 give another order for the few
//     characters from U+E000 to U+FFFF beside those above.)
//  3. Write it without white space. In strings, escape the quotation mark and the
//     backslash with a backslash, write \b \t \n \f \r for these five, \u00xx in lower
//     case for the other characters below U+0020, and everything else as it is.
//  4. Encode it in UTF-8. Nothing is normalized.
//
// Without any answer it is {}. In JavaScript:
//
//	"{" + Object.keys(responses).sort().map(name =>
//	    JSON.stringify(name) + ":" + JSON.stringify({value: responses[name].value})).join(",") + "}"
//
// The result is nil for [StoredAnswers] of what is no such JSON.
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

// appendCanonical appends s, which is UTF-8, as a JSON string in the one spelling of
// RFC 8785 §3.2.2.2.
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
