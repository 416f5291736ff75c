package stats

import (
	"slices"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		samples []time.Duration
		p       int
		want    time.Duration
	}{
		{nil, 50, 0}, {hundred[:1], 50, 1}, {hundred[:1], 100, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:10], 99, 10},
	} {
		if got := Percentile(c.samples, c.p); got != c.want {
			t.Errorf("percentile %d of %d samples is %d, want %d", c.p, len(c.samples), got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	s := NewSpread([]float64{3, 1, 2})
	if s.Text(1) != "2.0 (1.0–3.0)" || !slices.Equal(s.Rounds, []float64{3, 1, 2}) {
		t.Errorf("got %s of %v", s.Text(1), s.Rounds)
	}
	if s := NewSpread([]float64{1, 2}); s.Median != 1.5 {
		t.Errorf("the median of two is %v", s.Median)
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 12: "12", 123: "123", 1234: "1,234", -1234567: "-1,234,567", -123: "-123"} {
		if got := Decimal(x, 0); got != want {
			t.Errorf("%v is spelled %s, want %s", x, got, want)
		}
	}
	if got := Decimal(1234.567, 2); got != "1,234.57" {
		t.Errorf("got %s", got)
	}
}
