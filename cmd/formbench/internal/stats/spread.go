// Package stats summarizes figures: percentiles of samples, and the spread of the rounds.
package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Percentile returns the smallest sample that p percent of all are not above
// (nearest rank), or 0 when there is none.
func Percentile(sorted []time.Duration, p int) time.Duration { return Quantile(sorted, p, 100) }

// Quantile is the same for parts of a whole.
func Quantile(sorted []time.Duration, part, whole int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*part + whole - 1) / whole
	return sorted[max(rank-1, 0)]
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A Spread is what the rounds say of one figure.
type Spread struct {
	Median  float64   `json:"median"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	Rounds  []float64 `json:"rounds"`
}

// NewSpread returns the spread of at least one figure, by round.
func NewSpread(rounds []float64) Spread {
	sorted := slices.Sorted(slices.Values(rounds))
	n := len(sorted)
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Lowest: sorted[0], Highest: sorted[n-1], Rounds: rounds,
	}
}

// Text returns the median, and the range when there was more than one round.
func (s Spread) Text(decimals int) string {
	if len(s.Rounds) == 1 {
		return fmt.Sprintf("%.*f", decimals, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", decimals, s.Median, decimals, s.Lowest, decimals, s.Highest)
}

// Spelled returns the median, and the range when there was more than one round,
// or nothing when nothing was measured.
func (s *Spread) Spelled(decimals int) string {
	if s == nil {
		return ""
	}
	if len(s.Rounds) < 2 {
		return Decimal(s.Median, decimals)
	}
	return fmt.Sprintf("%s (%s–%s)", Decimal(s.Median, decimals), Decimal(s.Lowest, decimals), Decimal(s.Highest, decimals))
}

// Thousands puts commas into a number.
func Thousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// Decimal spells a number with commas between thousands.
func Decimal(x float64, decimals int) string {
	return Thousands(strconv.FormatFloat(x, 'f', decimals, 64))
}

// Significant returns how many decimals leave about three digits.
func Significant(x float64) int {
	switch {
	case x >= 100:
		return 0
	case x >= 10:
		return 1
	}
	return 2
}
