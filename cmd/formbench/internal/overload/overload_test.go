package overload

import (
	"math"
	"testing"
	"time"
)

// Refusals are no goodput, and what comes too late to be sent was offered.
func TestOverloadFigures(t *testing.T) {
	s := pressed{latencies: []time.Duration{1, 2, 3}, sent: 12, unsent: 8, refused: 9}
	c := Cell{What: OpenWhat}
	c.fill(&s, 2e9, 3)
	if c.Goodput != 1.5 || c.OfPeak != 0.5 || c.Sent != 6 || c.Offered != 10 || math.Abs(c.Refused-0.75) > 1e-9 {
		t.Errorf("%+v", c)
	}
}
