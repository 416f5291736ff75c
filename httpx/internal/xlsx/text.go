package xlsx

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits of a workbook. The first two are Excel's.
const (
	maxRows  = 1 << 20 // of a sheet
	maxText  = 32_767  // of a cell, in UTF-16 units
	maxLinks = 10_000  // that can be clicked, since memory holds them; further ones are texts
)

// Styles of cells, as parts.tmpl has them. The last three have the format of texts, so that editing one doesn't make a formula of it.
const (
	numberStyle = iota
	wholeStyle
	dateStyle
	timeStyle
	textStyle
	headingStyle
	linkStyle
)

// A Cell is one cell. The zero Cell is empty.
type Cell struct {
	Text   string
	value  string // of a number, instead of the text
	style  int
	target string // of a link
}

// Number returns a cell with a number, or with a text if Excel would change it: it keeps 15 digits.
func Number(text string) Cell {
	digits, _, exponent := strings.Cut(strings.ToLower(text), "e")
	whole := !exponent && !strings.Contains(digits, ".") && len(text) > 11 // Excel would show 1.23E+11
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	x, err := strconv.ParseFloat(text, 64)
	size := math.Abs(x)
	switch {
	case !formsvc.ValidNumber(text), err != nil, len(digits) > 15, digits != "" && (size < 0x1p-1022 || size > 9.99999999999999e307):
		return Cell{Text: text}
	case whole:
		return Cell{value: text, style: wholeStyle}
	}
	return Cell{value: text}
}

// Date returns a cell with a day, YYYY-MM-DD. Others are texts, and those before March 1900, since Excel counts a day too many there.
func Date(text string) Cell {
	c := Cell{Text: text, style: dateStyle}
	if at, err := time.Parse(time.DateOnly, text); err == nil && at.Unix() >= (61-epoch)*24*60*60 {
		c.value = days(at)
	}
	return c
}

// Time returns a cell with a time from 1970 on, as it is in its own zone. That of the zero time is empty.
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Cell{}
	}
	return Cell{value: days(at), style: timeStyle}
}

// epoch is 1 January 1970 in days since the end of 1899.
const epoch = 25_569

func days(at time.Time) string {
	_, offset := at.Zone()
	return strconv.FormatFloat(float64(at.Unix()+int64(offset))/(24*60*60)+epoch, 'f', -1, 64)
}

// Link returns a cell with an address, or with a path beside the workbook.
func Link(text string) Cell {
	c := Cell{Text: text, target: text, style: linkStyle}
	switch {
	case strings.Contains(text, "\n") || strings.HasPrefix(text, "/"): // several, or one without a host
		c.target = ""
	case !strings.Contains(text, "://"):
		c.target = (&url.URL{Path: text}).EscapedPath()
	}
	return c
}

// truncate returns a text that fits in a cell. It says so if it isn't all.
func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	units, end := 0, 0
	for i, r := range text {
		if units <= maxText-100 {
			end = i
		}
		units += utf16.RuneLen(r)
	}
	if units <= maxText {
		return text
	}
	return fmt.Sprintf("%s… [truncated from %d characters]", text[:end], units)
}

// escapeForm is how Excel writes a character that XML can't have.
var escapeForm = regexp.MustCompile(`^_x[0-9A-Fa-f]{4}_`)

// appendEscaped appends a text as XML.
func appendEscaped(b []byte, text string) []byte {
	for i, r := range text {
		switch {
		case r == '&' || r == '<' || r == '>':
			b = fmt.Appendf(b, "&#%d;", r)
		case r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF || r == '_' && escapeForm.MatchString(text[i:]):
			b = fmt.Appendf(b, "_x%04X_", r)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}
