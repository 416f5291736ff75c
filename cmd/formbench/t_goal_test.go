package main

import (
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/stats"
)

// TestGoal makes sure that a verdict goes by the number shown.
func TestGoal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		goal  goal
		value float64
		want  bool
	}{
		{goal{Bound: 1, atLeast: true, decimals: 2}, 0.996, true},
		{goal{Bound: 1, atLeast: true, decimals: 2}, 0.994, false},
		{goal{Bound: 60}, 60.4, true},
		{goal{Bound: 60}, 60.6, false},
	} {
		s := stats.NewSpread([]float64{c.value})
		if got := c.goal.met(&s); got.Reached != c.want || !got.Measured {
			t.Errorf("%v of %v: reached is %v", c.value, c.goal.Bound, got.Reached)
		}
	}
}
