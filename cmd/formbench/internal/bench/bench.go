// Package bench is what the parts of a run share: its flags, the names of systems, stores and parts, and where figures
// and warnings go.
package bench

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// A Bench is what all parts of a run share.
type Bench struct {
	Options
	Self      string         // this program, which is also the server
	Log       io.Writer      // progress
	Out       *result.Writer // nil for none
	S3Program string         // "" when there is none
	Notes     []string       // what readers of the figures must know
	Cells     result.Cells   // what was measured so far
}

// Warn notes what readers of the figures must know.
func (b *Bench) Warn(note string) {
	b.Notes = append(b.Notes, note)
	_, _ = fmt.Fprintln(b.Log, "formbench:", note)
}

// Note keeps a cell that was measured.
func (b *Bench) Note(c *result.Cell) error {
	b.Cells = append(b.Cells, *c)
	figures := make([]string, min(len(c.Figures), 6))
	for i := range figures {
		figures[i] = result.Spell(c.Figures[i].Value) + " " + c.Figures[i].Unit
	}
	_, _ = fmt.Fprintf(b.Log, "%s: %s\n", c, strings.Join(figures, ", "))
	if b.Out == nil {
		return nil
	}
	return b.Out.Write(c)
}

// Profile names the file of the cell's CPU profile, if there is to be one.
func (b *Bench) Profile(c *result.Cell) string {
	if b.Profiles == "" {
		return ""
	}
	return filepath.Join(b.Profiles, c.File(".pprof"))
}

// Rotated returns the list with another beginning in each round, so that no
// system always comes after the same one.
func Rotated[T any](list []T, round int) []T {
	at := round % max(len(list), 1)
	return slices.Concat(list[at:], list[:at])
}
