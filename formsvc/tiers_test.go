package formsvc_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// luck matches calls by which a test depends on the speed of the machine or on other programs.
var luck = regexp.MustCompile(`\btime\.Sleep\(|\b(runtime\.ReadMemStats|debug\.SetGCPercent|debug\.SetMemoryLimit)\(|\bexec\.Look` + `Path\(`)

// otherModules matches files of the modules below this one, whose tests are all of the long tier.
var otherModules = regexp.MustCompile(`^(cmd/formbench|cmd/formsvc/torture|examples/receivers|\.ci)/`)

// TestFastTestsDontDependOnLuck checks tests without the build tag long: they may sleep only on the clock of testing/synctest, and
// measure no memory. Slow, measuring and foreign things belong to the long tier (see .ci/README.md).
func TestFastTestsDontDependOnLuck(t *testing.T) {
	t.Parallel()
	files := 0
	walk(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") || otherModules.MatchString(name) {
			return
		}
		text := must(os.ReadFile("../" + name))
		head, _, _ := bytes.Cut(text, []byte("\npackage "))
		if files++; bytes.Contains(head, []byte("long")) && bytes.HasPrefix(head, []byte("//go:build ")) || bytes.Contains(text, []byte(`"testing/synctest"`)) {
			return
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if call := luck.Find(line); call != nil {
				t.Errorf("%s:%d: %s...) in a fast test", name, i+1, call)
			}
		}
	})
	if files < 100 {
		t.Errorf("found %d files only", files)
	}
}
