package report

import (
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// TestGoal makes sure that a verdict goes by the number shown.
func TestGoal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal  Goal
		value float64
		want  bool
	}{
		{Goal{Bound: 1, AtLeast: true, Decimals: 2}, 0.996, true},
		{Goal{Bound: 1, AtLeast: true, Decimals: 2}, 0.994, false},
		{Goal{Bound: 60}, 60.4, true},
		{Goal{Bound: 60}, 60.6, false},
	} {
		s := stats.NewSpread([]float64{c.value})
		if got := c.goal.Met(&s); got.Reached != c.want || !got.Measured {
			t.Errorf("%v of %v: reached is %v", c.value, c.goal.Bound, got.Reached)
		}
	}
}
