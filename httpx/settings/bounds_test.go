//go:build long

package settings_test

import (
	"strings"
	"testing"
)

// No page exceeds 150 KB, whatever is stored.
func TestPagesAreBounded(t *testing.T) {
	for _, character := range []string{"<", "&", `"`} {
		t.Run(character, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				for _, path := range (&giant{w, character}).fill() {
					a := w.get(path).is(200)
					if len(a.body) > maxPage {
						t.Errorf("%s: %d bytes", path, len(a.body))
					}
					// Every part gets its reserved space, whatever comes before it.
					switch {
					case strings.HasPrefix(path, "/deliveries/"):
						a.says("4 older attempts aren't shown", "The reply is cut here", `{"id":"`, "First part of")
						if n := strings.Count(a.body, `aria-label="Beginning of the reply"`); n != 10 {
							t.Errorf("%d answers of 10 attempts", n)
						}
					case strings.Contains(path, "/responses/"):
						a.says("older files aren't shown", "older signatures aren't shown", "older comments aren't shown", "The answers are cut here").
							lacks("No files", "No comments", "no value")
					}
				}
			})
		})
	}
}
