package console

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/formsvc/toolkit/formsvc"
)

// Groups of responses. 0 has all of them, and the next ones those with a certain answer.
const (
	mostGroups = 6
	otherGroup = mostGroups + 1 // with another answer
	noGroup    = mostGroups + 2 // without an answer
	groups     = mostGroups + 3
)

// A tally is what was answered to one question. A date is the number that its digits make, and a file is that of its bytes.
type tally struct {
	*formsvc.Module

	of     [groups]figures
	counts map[countOf]int64
	keep   int     // how many counts it keeps before it widens the ranges
	width  float64 // of the ranges that are counted, by their beginnings. 0: each number
	places int     // of the numbers after the decimal point
}

// A countOf names the count of an option, a number or a range in a group of responses.
type countOf struct {
	value string
	group int
}

// others stands for values that are no option any more. No answer has it.
const others = "\x00"

// figures are the numbers of a question in a group of responses.
type figures struct {
	answered, numbers int64
	sum, least, most  float64
}

func newTally(m *formsvc.Module, keep int) *tally {
	t := &tally{Module: m, counts: map[countOf]int64{}, keep: keep}
	for _, option := range m.Options {
		t.counts[countOf{option, 0}] = 0
	}
	return t
}

// add counts the values of an answer in groups. Each choice counts once.
func (t *tally) add(values []string, in []int) {
	seen := map[string]bool{}
	for _, group := range in {
		t.of[group].answered++
	}
	for _, value := range values {
		switch t.Type {
		case formsvc.NumberModule, formsvc.RatingModule, formsvc.ScaleModule, formsvc.FileModule:
			t.addNumber(value, in)
		case formsvc.DateModule:
			if day, err := time.Parse(time.DateOnly, value); err == nil {
				t.addNumber(day.Format(dateDigits), in)
			}
		case formsvc.TimeModule:
			if hour, _, _ := strings.Cut(value, ":"); len(value) == len("15:04") && !seen[hour] {
				t.count(hour+":00–"+hour+":59", in)
				seen[hour] = true
			}
		default:
			if _, known := t.counts[countOf{value, 0}]; !known {
				value = others
			}
			if !seen[value] {
				t.count(value, in)
			}
			seen[value] = true
		}
	}
}

// count counts a value in groups. It copies the value, which would keep the response in memory.
func (t *tally) count(value string, in []int) {
	value = strings.Clone(value)
	for _, group := range in {
		t.counts[countOf{value, group}]++
	}
}

// addNumber counts a number: by itself, or in ranges when there are too many.
func (t *tally) addNumber(text string, in []int) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 1e300 {
		return
	}
	if n != math.Trunc(n) {
		_, places, _ := strings.Cut(strconv.FormatFloat(n, 'f', -1, 64), ".")
		t.places = max(t.places, len(places))
	}
	if len(text) <= maxDigits || len(text) > shownText {
		text = decimal(n) // one of more digits would lose some
	}
	for _, group := range in {
		of := &t.of[group]
		if of.numbers++; of.numbers == 1 {
			of.least, of.most = n, n
		}
		of.sum, of.least, of.most = of.sum+n, min(of.least, n), max(of.most, n)
	}
	if t.width > 0 {
		text = t.rangeOf(text)
	}
	t.count(text, in)
	for len(t.counts) > t.keep {
		t.widen()
	}
}

// widen counts by wider ranges: of a power of ten, so that those that are shown consist of them.
func (t *tally) widen() {
	t.width = max(t.width, math.Pow10(-t.places)) * 10
	counts := map[countOf]int64{}
	for x, n := range t.counts {
		counts[countOf{t.rangeOf(x.value), x.group}] += n
	}
	t.counts = counts
}

// inRange returns the place of a number among ranges. It forgives the rounding of fractions.
func inRange(n, width float64) float64 { return math.Floor(n/width + 1e-9) }

// rangeOf returns the beginning of the range that has a number.
func (t *tally) rangeOf(number string) string {
	return decimal(inRange(parsed(number), t.width) * t.width)
}

// values returns the numbers, or the beginnings of their ranges, in order.
func (t *tally) values() (list []string) {
	for x := range maps.Keys(t.counts) {
		if x.group == 0 {
			list = append(list, x.value)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(parsed(a), parsed(b)), cmp.Compare(a, b)) })
	return list
}

// figures returns the sum, mean, median, least and greatest number of a group; of a rating the mean and the median; the first and the last date; or how many files there
// are and their size.
func (t *tally) figures(values []string, group int) []string {
	of := &t.of[group]
	switch {
	case of.numbers == 0:
		return slices.Repeat([]string{"–"}, 5)
	case t.Type == formsvc.FileModule:
		return []string{thousands(of.numbers), humanize.Bytes(uint64(of.sum))}
	case t.Type == formsvc.DateModule:
		return []string{dated(of.least).Format(time.DateOnly), dated(of.most).Format(time.DateOnly)}
	}
	mean := rounded(of.sum/float64(of.numbers), t.places+2)
	if t.Type.Steps() {
		return []string{mean, t.median(values, group)}
	}
	return []string{rounded(of.sum, t.places), mean, t.median(values, group), decimal(of.least), decimal(of.most)}
}

// median returns the number in the middle of a group, which is about that if ranges were counted.
func (t *tally) median(values []string, group int) string {
	n, before, lower, upper := t.of[group].numbers, int64(0), 0.0, 0.0
	for _, value := range values {
		if before <= (n-1)/2 {
			lower = parsed(value)
		}
		if before <= n/2 {
			upper = parsed(value)
		}
		before += t.counts[countOf{value, group}]
	}
	if t.width > 0 {
		return "about " + rounded(lower/2+upper/2+t.width/2, t.places)
	}
	return rounded(lower/2+upper/2, t.places+1)
}
