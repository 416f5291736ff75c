package intake

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/formsvc/toolkit/formsvc"
)

var (
	plainNumber   = regexp.MustCompile(`^([0-9]*)(?:([.,٫])([0-9]*))?$`)
	groupedNumber = regexp.MustCompile(`^([1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+|(?:,[0-9]{3})+|(?: [0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3}))(?:([.,٫])([0-9]*))?$`)
)

// readNumber returns a number that is written as in a language in JSON's notation. The text "decimal" is the separator before decimals; it is
// missing if people who write the language differ. If it can be read in two ways, other is the second
// one, and both are as the visitor may write them. Other texts are returned as they are.
func readNumber(s string, t texts) (number, other string) {
	text := plainText(s)
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	own := t["decimal"]
	decimal := func(mark string) bool { return mark == "" || mark == "٫" || mark == "." || own != "." }
	var plain, grouped string
	if m := plainNumber.FindStringSubmatch(text); m != nil && m[1]+m[3] != "" && (decimal(m[2]) || groupedNumber.MatchString(text)) {
		plain = canonical(sign, m[1], m[3])
	}
	if m := groupedNumber.FindStringSubmatch(text); m != nil {
		mark := strings.Trim(m[1], "0123456789")[:1]
		if mark != m[2] && decimal(m[2]) && (plain == "" || mark != own) {
			grouped = canonical(sign, strings.NewReplacer(".", "", ",", "", " ", "").Replace(m[1]), m[3])
		}
	}
	if plain != "" && grouped != "" {
		return grouped, t.number(plain)
	}
	return cmp.Or(grouped, plain, s), ""
}

// number returns a number of JSON's notation as people of the language write it, so that readNumber reads it in one way.
func (t texts) number(s string) string { return formsvc.WriteNumber(s, t["code"], t["decimal"]) }

// plainText returns a number or date with the digits and marks of ASCII. Marks for thousands become spaces; that for Arabic decimals stays.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '٠' && r <= '٩':
			return r - '٠' + '0'
		case r >= '۰' && r <= '۹':
			return r - '۰' + '0'
		case r == '٬', unicode.IsSpace(r), strings.ContainsRune("'’ʼ", r):
			return ' '
		case strings.ContainsRune("−–‐‑﹣", r):
			return '-'
		case unicode.Is(unicode.Cf, r): // marks of direction
			return -1
		}
		return r
	}, width.Fold.String(s))
}

// canonical returns a number in JSON's notation.
func canonical(sign, whole, fraction string) string {
	whole = cmp.Or(strings.TrimLeft(whole, "0"), "0")
	if whole == "0" && strings.Trim(fraction, "0") == "" {
		sign = ""
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

var (
	yearFirst  = regexp.MustCompile(`^([0-9]{4}) ?([./-]|年) ?([0-9]{1,2}) ?([./-]|月) ?([0-9]{1,2}) ?日?(?: ?\([日月火水木金土]\))?$`)
	yearLast   = regexp.MustCompile(`^([0-9]{1,2}) ?([./-]) ?([0-9]{1,2}) ?([./-]) ?([0-9]{4})(?: ?r\.?)?$`)
	dayInWords = regexp.MustCompile(`^([0-9]{1,2})(?:er|[oa]|st|nd|rd|th)?$`)
	// betweenWords may stand beside the day, the month and the year.
	betweenWords = regexp.MustCompile(`^(de|del|of|the|le|el|il|den|r|roku|من)$`)
)

// readDate returns a day that is written as in a language as YYYY-MM-DD. In English and Japanese it may begin with the month; if it can be read in
// two ways, other is the second one. Other texts are returned as they are.
func readDate(s string, t texts) (day, other string) {
	if _, err := time.Parse(time.DateOnly, s); err == nil { // as browsers send it
		return s, ""
	}
	text := plainText(s)
	var orders [][3]string // year, month and day
	if m := yearFirst.FindStringSubmatch(text); m != nil && (m[2] == m[4] || m[2]+m[4] == "年月") {
		orders = append(orders, [3]string{m[1], m[3], m[5]})
	} else if m := yearLast.FindStringSubmatch(text); m != nil && m[2] == m[4] && (t["code"] != "en" || m[2] != ".") {
		orders = append(orders, [3]string{m[5], m[3], m[1]})
		if t["decimal"] == "." {
			orders = append(orders, [3]string{m[5], m[1], m[3]})
		}
	} else {
		orders = append(orders, t.dateInWords(text))
	}
	var readings []string
	for _, of := range orders {
		if at, err := time.Parse("2006-1-2", strings.Join(of[:], "-")); err == nil {
			readings = append(readings, at.Format(time.DateOnly))
		}
	}
	readings = append(slices.Compact(readings), "", "")
	return cmp.Or(readings[0], s), readings[1]
}

// dateInWords returns the year, month and day of a text that names the month, in any order: a day has at most two digits, a year four.
func (t texts) dateInWords(text string) (of [3]string) {
	month := ""
	for _, word := range strings.FieldsFunc(folded(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		m := dayInWords.FindStringSubmatch(word)
		switch {
		case m != nil && of[2] == "":
			of[2] = m[1]
		case len(word) == 4 && word[0] <= '9' && of[0] == "":
			of[0] = word
		case !betweenWords.MatchString(word):
			month += word
		}
	}
	of[1] = t.month(month)
	return of
}

// month returns the number of the month with that name, or whose name alone begins so, or a text that isn't one.
func (t texts) month(name string) (number string) {
	for i, full := range strings.Fields(t["months"] + " " + t["monthsToo"]) {
		full, n := folded(full), strconv.Itoa(i%12+1)
		switch {
		case full == name:
			return n
		case len(name) < 3 || !strings.HasPrefix(full, name):
		case number == "" || number == n:
			number = n
		default:
			number = "of two"
		}
	}
	return number
}

// folded returns a text in lower case without accents. The two letters i of Turkish become one.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'ı':
			return 'i'
		case unicode.Is(unicode.Mn, r):
			return -1
		}
		return r
	}, norm.NFKD.String(strings.ToLower(s)))
}

// writtenTime has the hour as its third group, the minutes as its fourth, and words for the two halves of a day around them.
var writtenTime = regexp.MustCompile(`^(?:(午前)|(午後)|ore|godz\.?|saat)? ?([0-9]{1,2}) ?(?:[:.hu時] ?([0-9]{2})分?)? ?(?:(a\.? ?m\.?|ص|صباحا)|(p\.? ?m\.?|م|مساء)|uhr|h|u|uur|時)?$`)

// readTime returns a time of day as HH:MM. Other texts are returned as they are.
func readTime(s string) string {
	m := writtenTime.FindStringSubmatch(folded(plainText(s)))
	if m == nil || m[0] == m[3] {
		return s
	}
	layout, text := "15:04", m[3]+":"+cmp.Or(m[4], "00")
	if m[1]+m[5] != "" {
		layout, text = "3:04PM", text+"AM"
	} else if m[2]+m[6] != "" {
		layout, text = "3:04PM", text+"PM"
	}
	if at, err := time.Parse(layout, text); err == nil {
		return at.Format("15:04")
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
	return isolate(strings.Replace(text, "UTC", formsvc.ZoneName(at), 1))
}
