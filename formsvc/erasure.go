package formsvc

import "strings"

// Erased counts what was removed.
type Erased struct {
	Responses  int
	Files      int
	Comments   int
	Signatures int
	Events     int
	Deliveries int
	Attempts   int
	Notices    int
	Answers    int  // records of repeatable calls whose answer was removed
	FileIDs    []ID // of the files, whose blobs are to be removed
}

// SameEmail reports whether two addresses are one person's: they differ at most in
// the case of ASCII letters. Stores that choose by query must agree with it.
func SameEmail(a, b string) bool { return foldEmail(a) == foldEmail(b) }

// foldEmail returns the address with ASCII letters in lower case.
func foldEmail(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Erasure removes people's data. It is safe for concurrent use.
type Erasure struct{ s *core }
