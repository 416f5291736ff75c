package intake

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// decimalOf returns the separator before decimals, or "" if people who write the language differ.
func decimalOf(language string) string {
	return map[string]string{"en": ".", "de": ",", "fr": ","}[language]
}

var (
	plainNumber   = regexp.MustCompile(`^([0-9]*)(?:([.,d])([0-9]*))?$`)
	groupedNumber = regexp.MustCompile(`^([1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+|(?:,[0-9]{3})+|(?:g[0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3}))(?:([.,d])([0-9]*))?$`)
)

// readNumber returns a number that is written as in a language in JSON's notation. If it can be read in two ways, other is the second
// one, and both are as the visitor may write them. Other texts are returned as they are.
func readNumber(s, language string) (number, other string) {
	text := plainText(s)
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	own := decimalOf(language)
	decimal := func(mark string) bool { return mark == "" || mark == "d" || mark == "." || language != "en" }
	var readings []string
	if m := plainNumber.FindStringSubmatch(text); m != nil && m[1]+m[3] != "" && (decimal(m[2]) || groupedNumber.MatchString(text)) {
		readings = append(readings, canonical(sign, m[1], m[3]))
	}
	if m := groupedNumber.FindStringSubmatch(text); m != nil {
		mark := strings.Trim(m[1], "0123456789")[:1]
		if mark != m[2] && decimal(m[2]) {
			readings = append(readings, canonical(sign, strings.NewReplacer(".", "", ",", "", "g", "").Replace(m[1]), m[3]))
			if mark == own && len(readings) == 2 {
				readings = readings[:1]
			}
		}
	}
	switch len(readings) {
	case 0:
		return s, ""
	case 1:
		return readings[0], ""
	}
	mark, end := own, ""
	switch {
	case language == "ar":
		mark = "٫"
	case own == "":
		mark, end = ",", "0" // so that it isn't read as thousands
	}
	return readings[1], strings.Replace(readings[0], ".", mark, 1) + end
}

// plainText returns a number or date with the digits of ASCII. Marks for thousands become g, and the Arabic mark for decimals d.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '٠' && r <= '٩':
			return r - '٠' + '0'
		case r >= '۰' && r <= '۹':
			return r - '۰' + '0'
		case r >= '０' && r <= '９':
			return r - '０' + '0'
		case r == '٫':
			return 'd'
		case r == '٬', unicode.IsSpace(r), strings.ContainsRune("'’ʼ", r):
			return 'g'
		case strings.ContainsRune("−–‐‑﹣－", r):
			return '-'
		case unicode.Is(unicode.Cf, r): // marks of direction
			return -1
		case r == 'd' || r == 'g':
			return '?'
		}
		return r
	}, s)
}

// canonical returns a number in JSON's notation.
func canonical(sign, whole, fraction string) string {
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

var writtenDate = regexp.MustCompile(`^([0-9]{1,2})([./-])g?([0-9]{1,2})([./-])g?([0-9]{4})$`)

// readDate returns a day that is written as in a language as YYYY-MM-DD. In English it may begin with the month; if it can be read in
// two ways, other is the second one. Other texts are returned as they are.
func readDate(s, language string) (day, other string) {
	text := plainText(s)
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return text, ""
	}
	m := writtenDate.FindStringSubmatch(text)
	if m == nil || m[2] != m[4] || language == "en" && m[2] == "." {
		return s, ""
	}
	var readings []string
	for i, of := range [][2]string{{m[3], m[1]}, {m[1], m[3]}} { // month and day
		if t, err := time.Parse("2006-1-2", m[5]+"-"+of[0]+"-"+of[1]); err == nil && (i == 0 || language == "en") {
			readings = append(readings, t.Format(time.DateOnly))
		}
	}
	switch {
	case len(readings) == 0:
		return s, ""
	case len(readings) == 2 && readings[0] != readings[1]:
		return readings[0], readings[1]
	}
	return readings[0], ""
}

var writtenTime = regexp.MustCompile(`^([0-9]):([0-9]{2})$`)

// readTime returns a time of day as HH:MM. Other texts are returned as they are.
func readTime(s string) string {
	if text := writtenTime.ReplaceAllString(plainText(s), "0$1:$2"); len(text) == len("HH:MM") {
		return text
	}
	return s
}

// date returns a day as people of the language write it.
func (t texts) date(day time.Time) string {
	return fmt.Sprintf(t["date"], day.Day(), strings.Split(t["months"], " ")[day.Month()-1], day.Year())
}

// time returns a time in the time zone of the campaign, which stands in place of UTC.
func (v *visit) time(at time.Time) string {
	if zone, err := v.campaign.Zone(); err == nil { // else the machine doesn't know it any more
		at = at.In(zone)
	}
	text := fmt.Sprintf(v.t["time"], v.t.date(at), at.Hour(), at.Minute())
	return isolate(strings.Replace(text, "UTC", at.Format("MST"), 1))
}
