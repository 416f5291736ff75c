package scale

import (
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/formsvc"
)

// TestHistoryHasMeasuredRecords checks that histories have the records that are measured: the shares of campaigns,
// statuses and due deliveries, and unique identifiers and references.
func TestHistoryHasMeasuredRecords(t *testing.T) {
	t.Parallel()
	for _, n := range []int{bench.LeastScale, 10_000, 200_000} {
		s := &history{n: n}
		s.firstDue = s.outage(n / 4)
		c := s.count()
		if c.campaigns[0] != int64(n/bigShare) || c.statuses[rareStatus] != rareCount || c.due != int64(n/4) {
			t.Errorf("of %d: %d in the big campaign, %v, %d due", n, c.campaigns[0], c.statuses, c.due)
		}
		if done := c.statuses[formsvc.StatusCompleted]; done < c.campaigns[0]/2 || c.statuses[formsvc.StatusPending] > c.campaigns[0]/20 {
			t.Errorf("of %d: %v", n, c.statuses)
		}
		ids, references := make(map[formsvc.ID]bool, n), make(map[string]bool, n)
		for i := range n {
			for _, id := range []formsvc.ID{s.id(i, false), s.id(i, true)} {
				if _, ok := formsvc.ParseID(string(id)); !ok || ids[id] || id < formsvc.FloorID(s.at(i)) {
					t.Fatalf("identifier %s of %d", id, i)
				}
				ids[id] = true
			}
			if r := s.reference(i); references[r] || len(r) != 11 {
				t.Fatalf("reference %s of %d", r, i)
			} else {
				references[r] = true
			}
		}
	}
}
