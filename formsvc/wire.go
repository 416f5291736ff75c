package formsvc

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

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
