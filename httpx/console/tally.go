package console

import (
	"cmp"
	"fmt"
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

// Limits of what is shown of numbers and dates.
const (
	maxDigits  = 15  // that a float64 keeps
	mostBars   = 12  // numbers or their ranges, or days that are far apart
	usualRows  = 31  // periods of dates
	mostRows   = 100 // periods of dates, if the visitor chose their length
	dateDigits = "20060102"
)

// A scale splits numbers into ranges with round edges, or dates into periods. Each has a place, an integer.
type scale struct {
	name, layout string
	width        float64 // of the ranges that it can be made from
	days, months float64 // of a period
}

// place returns the place of the range with a number, or of the period with a date.
func (s *scale) place(n float64) float64 {
	switch day := dated(n); {
	case s.days > 0:
		return math.Floor(float64((day.Unix()-time.Time{}.Unix())/86400) / s.days) // year 1 begins with a Monday
	case s.months > 0:
		return math.Floor((float64(day.Year()*12+int(day.Month())) - 1) / s.months)
	}
	return inRange(n, s.width)
}

// text returns the range or period at a place.
func (s *scale) text(place float64) string {
	switch {
	case s.days > 0:
		return time.Time{}.AddDate(0, 0, int(place*s.days)).Format(s.layout)
	case s.months > 0:
		return time.Date(0, time.Month(place*s.months+1), 1, 0, 0, 0, 0, time.UTC).Format(s.layout)
	case s.name == "whole":
		return decimal(place*s.width) + " to " + decimal((place+1)*s.width-1)
	}
	return decimal(place*s.width) + " to below " + decimal((place+1)*s.width)
}

// rangeScales returns scales of 1, 2, 5, 10 and so on, or fractions of them, which begin with too many ranges.
func (t *tally) rangeScales() (list []scale) {
	of, name := &t.of[0], "fraction"
	span := max(of.most-of.least, math.Abs(of.most)*1e-9, 1e-300) // as far as a float64 can tell
	power := max(math.Floor(math.Log10(span/mostBars)), math.Round(math.Log10(t.width)))
	if t.places == 0 {
		power, name = max(power, 0), "whole"
	}
	for i, digit := range []int{1, 2, 5, 1, 2, 5, 1} {
		list = append(list, scale{name: name, width: parsed(fmt.Sprint(digit, "e", int(power)+i/3))})
	}
	return list
}

// dateScales returns the periods that dates can be shown by, from the chosen one or the shortest on.
func (t *tally) dateScales(chosen string) []scale {
	all := []scale{
		{"day", time.DateOnly, 1, 1, 0}, {"week", "Week of 2006-01-02", 1, 7, 0}, {"month", "2006-01", 1e2, 0, 1}, {"year", "2006", 1e4, 0, 12},
		{"decade", "2006s", 1e5, 0, 120}, {"century", "2006s", 1e6, 0, 1200}, {"millennium", "2006s", 1e7, 0, 12000},
	}
	first := max(slices.IndexFunc(all, func(s scale) bool { return s.name == chosen }), 0)
	return slices.DeleteFunc(all[first:], func(s scale) bool { return s.width < t.width })
}

// show calls add with every range of the first scale that has at most so many, in order, and returns the name of the scale. Empty ones
// are left out of a scale with more if there are few others.
func (t *tally) show(scales []scale, values []string, most, few int, add func(text string, values ...string)) string {
	for i, s := range scales {
		in := map[float64][]string{}
		for _, value := range values {
			place := s.place(parsed(value))
			in[place] = append(in[place], value)
		}
		shown := slices.Sorted(maps.Keys(in))
		first, last := shown[0], shown[len(shown)-1]
		every := last-first < float64(most)
		if !every && len(shown) > few && i < len(scales)-1 {
			continue
		}
		for place := first + 1; every && place < last; place++ {
			if in[place] == nil {
				shown = append(shown, place)
			}
		}
		slices.Sort(shown)
		for _, place := range shown {
			add(s.text(place), in[place]...)
		}
		return s.name
	}
	return ""
}

// dated returns the date that digits make, or the first one with them.
func dated(digits float64) time.Time {
	n := int(digits)
	return time.Date(n/1e4, time.Month(max(n/1e2%1e2, 1)), max(n%1e2, 1), 0, 0, 0, 0, time.UTC)
}

// parsed returns the value of a number that was counted.
func parsed(number string) float64 {
	n, _ := strconv.ParseFloat(number, 64)
	return n
}

// rounded writes a number with at most so many places after the decimal point.
func rounded(n float64, places int) string {
	return decimal(parsed(strconv.FormatFloat(n, 'f', places, 64)))
}

// decimal writes a number in plain digits. Only a very large or very small one has an exponent.
func decimal(n float64) string {
	n = parsed(strconv.FormatFloat(n, 'g', maxDigits, 64))
	switch abs := math.Abs(n); {
	case abs == 0:
		return "0"
	case abs >= 1e30 || abs < 1e-30:
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
