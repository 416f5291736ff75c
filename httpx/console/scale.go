package console

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

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
