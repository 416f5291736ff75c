// Package finding is how a check of a store, such as sqlite.Diagnose, says what it found,
// and what to do about it.
package finding

import "fmt"

// A Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, but may not for long, or not as well as it could
	Problem Level = "problem" // something doesn't work, or what was promised can't be kept
)

// A Finding is the result of one check. It has no secret in it.
type Finding struct {
	Check  string `json:"check"` // what was looked at, such as "schema"
	Level  Level  `json:"level"`
	Detail string `json:"detail"` // what was found
	Advice string `json:"advice"` // what to do; "" when that is nothing
}

// Good returns a finding that there is nothing to do. The detail is made as by
// [fmt.Sprintf].
func Good(check, detail string, args ...any) Finding {
	return Finding{Check: check, Level: OK, Detail: fmt.Sprintf(detail, args...)}
}

// Warn returns a finding that somebody should look at.
func Warn(check, advice, detail string, args ...any) Finding {
	return Finding{Check: check, Level: Warning, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Bad returns a finding that somebody must mend.
func Bad(check, advice, detail string, args ...any) Finding {
	return Finding{Check: check, Level: Problem, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}
