package formsvc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Statuses with a special meaning.
const (
	StatusPending   = "pending"   // status of a new response (specification)
	StatusValidated = "validated" // the specification's other status
	StatusCompleted = "completed" // the final status by default
	StatusSpam      = "spam"      // status of a response that is held ([Response].Held)
)

// maxStatus is the largest length of a status, in characters.
const maxStatus = 64

// statusRule describes the texts that can be a status.
const statusRule = "must have 1 to 64 characters, at least one visible, no control characters, and no space at its ends"

// isStatus reports whether a text follows statusRule.
func isStatus(s string) bool {
	return visible(s) && CheckText(s) == nil && utf8.RuneCountInString(s) <= maxStatus &&
		!strings.ContainsFunc(s, unicode.IsControl) && strings.TrimSpace(s) == s
}

// A Workflow says which statuses a response may have and which may follow which. The zero value
// allows any status after any, with "completed" final. A status is any text of 1 to 64 characters
// without control characters and without spaces at its ends; "Done" and "done" differ.
type Workflow struct {
	Statuses    []string            `json:"statuses"`    // the known statuses; "pending" is always known. Defaults to any
	Transitions map[string][]string `json:"transitions"` // from → the statuses that may follow. Defaults to any after any
	Final       []string            `json:"final"`       // the statuses that finish a response. Defaults to "completed"
}

// Check returns an error if the workflow is contradictory.
func (w *Workflow) Check() error {
	for _, s := range slices.Concat(w.Statuses, w.Final, slices.Collect(maps.Keys(w.Transitions))) {
		if !isStatus(s) {
			return fmt.Errorf("formsvc: workflow: status %q: %s", s, statusRule)
		}
		if !w.knows(s) {
			return fmt.Errorf("formsvc: workflow: status %q is not among the statuses", s)
		}
	}
	for from, to := range w.Transitions {
		for _, s := range to {
			if !isStatus(s) || !w.knows(s) {
				return fmt.Errorf("formsvc: workflow: transition from %q to %q: unknown status", from, s)
			}
		}
	}
	return nil
}

func (w *Workflow) knows(status string) bool {
	return len(w.Statuses) == 0 || status == StatusPending || slices.Contains(w.Statuses, status)
}

// workflow returns the workflow of a campaign. It is the default one if there is none of its name any more.
func (o *Options) workflow(c *Campaign) *Workflow { return cmp.Or(o.Workflows[c.Workflow], o.Workflow) }

// final reports whether a response with the status is finished.
func (w *Workflow) final(status string) bool {
	if w.Final == nil {
		return status == StatusCompleted
	}
	return slices.Contains(w.Final, status)
}

// anyFollows reports whether every known status may follow: also after "spam" if the workflow doesn't have it, since it is
// then the status of held responses alone.
func (w *Workflow) anyFollows(from string) bool {
	if w.Transitions == nil || from != StatusSpam {
		return w.Transitions == nil
	}
	all := slices.Concat(w.Statuses, slices.Collect(maps.Keys(w.Transitions)), slices.Concat(slices.Collect(maps.Values(w.Transitions))...))
	return !slices.Contains(all, from)
}

// allow returns a *TransitionError if to must not follow from.
func (w *Workflow) allow(from, to string) error {
	if from == to || w.anyFollows(from) {
		return nil
	}
	allowed := w.Transitions[from]
	if slices.Contains(allowed, to) {
		return nil
	}
	return &TransitionError{From: from, To: to, Allowed: slices.Sorted(slices.Values(allowed))}
}

// next returns the statuses that may follow, sorted, and whether any other may follow, too.
func (w *Workflow) next(from string) (statuses []string, others bool) {
	known := w.Statuses
	if !w.anyFollows(from) {
		return slices.Sorted(slices.Values(w.Transitions[from])), false
	}
	if len(known) == 0 {
		known, others = []string{StatusValidated, StatusCompleted}, true
	}
	statuses = slices.Concat([]string{StatusPending}, known)
	slices.Sort(statuses)
	return slices.DeleteFunc(slices.Compact(statuses), func(s string) bool { return s == from }), others
}
