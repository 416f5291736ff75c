package bunstore

import (
	"testing"
	"time"
)

// A token tells when its claim was made, unless the claim is finished.
func TestClaimedAt(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.UTC)
	token := at.UnixMicro()*tokenSteps + 1
	for lease, want := range map[int64]time.Time{
		0: {}, 2: {}, token: at, token + 1: {}, token + tokenSteps - 2: at, token + tokenSteps: at.Add(time.Microsecond),
	} {
		if got := claimedAt(lease); !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("token %d is of a claim at %v, want %v", lease, got, want)
		}
	}
}
