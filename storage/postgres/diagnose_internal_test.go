package postgres

import (
	"testing"

	"github.com/formsvc/toolkit/storage/finding"
)

// The only server that tests have isn't too old.
func TestDiagnoseReportsOldServers(t *testing.T) {
	t.Parallel()
	for number, want := range map[int]finding.Level{130_020: finding.Problem, 140_000: finding.OK, 180_001: finding.OK} {
		if got := versionFinding("", number).Level; got != want {
			t.Errorf("%d: %s, want %s", number, got, want)
		}
	}
}
