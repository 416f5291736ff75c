// Package finding has the results of checks of a store, such as sqlite.Diagnose: what was
// found, and what to do about it.
package finding

import "fmt"

// A Level is how serious a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, but perhaps not for long, or not as well as it could
	Problem Level = "problem" // something doesn't work, or a promise can't be kept
)

// A Finding is the result of one check. It contains no secrets.
type Finding struct {
	Check  string `json:"check"` // what was checked, such as "schema"
	Level  Level  `json:"level"`
	Detail string `json:"detail"` // what was found
	Advice string `json:"advice"` // what to do; "" means nothing
}

// Good returns a finding that needs no action. detail and args are formatted as by
// [fmt.Sprintf].
func Good(check, detail string, args ...any) Finding {
	return Finding{Check: check, Level: OK, Detail: fmt.Sprintf(detail, args...)}
}

// Warn returns a finding that somebody should look into.
func Warn(check, advice, detail string, args ...any) Finding {
	return Finding{Check: check, Level: Warning, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}

// Bad returns a finding that must be fixed.
func Bad(check, advice, detail string, args ...any) Finding {
	return Finding{Check: check, Level: Problem, Detail: fmt.Sprintf(detail, args...), Advice: advice}
}
