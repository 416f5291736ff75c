package bunstore

import (
	"time"

	"github.com/formsvc/toolkit/storage/finding"
)

// ClockTolerance is how far two clocks may differ before a finding reports it.
const ClockTolerance = 10 * time.Second

// Finding reports the version of a schema, and whether this release, which knows the
// steps in list, can use it.
func (s *Schema) Finding(list []Migration) (finding.Finding, bool) {
	for _, m := range s.Examine(list) {
		if m.Other != "" {
			return finding.Bad("schema", "Use the build that made it, or give this one an empty database.",
				"another build made it: its step %d (%s) %s", m.Version, m.Name, m.Other), false
		}
	}
	applied, known := len(s.Rows), len(list)
	switch {
	case applied > known:
		return finding.Bad("schema", "Use the release that the servers run, or a later one.",
			"it has %d steps and this release knows %d: a newer release made it", applied, known), false
	case applied == 0:
		return finding.Warn("schema", "Start the server, or run: formsvc migrate up", "there are no tables yet"), false
	case applied < known:
		return finding.Warn("schema", "Back the database up, then start this release of the server, or run: formsvc migrate up",
			"it has %d of %d steps", applied, known), false
	}
	return finding.Good("schema", "up to date (%d steps)", applied), true
}

// ClockFinding compares a clock with that of this machine.
func ClockFinding(whose string, theirs, ours time.Time) finding.Finding {
	apart := theirs.Sub(ours).Round(100 * time.Millisecond)
	if apart.Abs() > ClockTolerance {
		return finding.Bad("clock", "Keep both clocks right with NTP: quotas, leases and the signatures of webhooks depend on them.",
			"the clock of %s is %v ahead of the one here", whose, apart)
	}
	return finding.Good("clock", "that of %s and the one here are %v apart", whose, apart.Abs())
}
