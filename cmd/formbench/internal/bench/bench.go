// Package bench is what the parts of a run share: its flags, the names of systems,
// stores and parts, and where warnings go.
package bench

import (
	"fmt"
	"io"
	"slices"
)

// A Bench is what all parts of a run share.
type Bench struct {
	Options
	Self      string    // this program, which is also the server
	Log       io.Writer // progress
	S3Program string    // "" when there is none
	Notes     []string  // what readers of the figures must know
}

// Warn notes what readers of the figures must know.
func (b *Bench) Warn(note string) {
	b.Notes = append(b.Notes, note)
	_, _ = fmt.Fprintln(b.Log, "formbench:", note)
}

// Rotated returns the list with another beginning in each round, so that no
// system always comes after the same one.
func Rotated(list []string, round int) []string {
	at := round % max(len(list), 1)
	return slices.Concat(list[at:], list[:at])
}
