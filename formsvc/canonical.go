package formsvc

import "github.com/gowebpki/jcs"

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
	if err := a.Each(func(string, []string) error { return nil }); err != nil { // stricter than JSON
		return nil, err
	}
	return jcs.Transform([]byte(a.JSON()))
}
