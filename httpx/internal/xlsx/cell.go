package xlsx

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
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
	value  string // a number instead of the text
	style  int    // of the number
	target string // of a link
}

// Number returns a cell with a number, or with a text if Excel would change it: it keeps 15 digits.
func Number(text string) Cell {
	digits, _, exponent := strings.Cut(strings.ToLower(text), "e")
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	x, err := strconv.ParseFloat(text, 64)
	size := math.Abs(x)
	if !formsvc.ValidNumber(text) || err != nil || len(digits) > 15 || digits != "" && (size < 0x1p-1022 || size > 9.99999999999999e307) {
		return Cell{Text: text}
	}
	if len(text) > 11 && !exponent && !strings.Contains(text, ".") { // Excel would show 1.23E+11
		return Cell{value: text, style: wholeStyle}
	}
	return Cell{value: text, style: numberStyle}
}

// Date returns a cell with a day, YYYY-MM-DD, or with a text before 1901, since Excel has a 29 February 1900.
func Date(text string) Cell {
	if at, err := time.Parse(time.DateOnly, text); err == nil && at.Year() > 1900 {
		return Cell{value: days(at), style: dateStyle}
	}
	return Cell{Text: text}
}

// Time returns a cell with a time as it is in its own zone, or an empty one for the zero time.
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Cell{}
	}
	return Cell{value: days(at), style: timeStyle}
}

// days returns the days since the end of 1899.
func days(at time.Time) string {
	_, offset := at.Zone()
	return strconv.FormatFloat(float64(at.Unix()+int64(offset))/(24*60*60)+25_569, 'f', -1, 64)
}

// Link returns a cell with an address, or with a path beside the workbook. It is a text if there are several, or a path without a host.
func Link(text string) Cell {
	switch {
	case strings.Contains(text, "\n") || strings.HasPrefix(text, "/"):
		return Cell{Text: text}
	case strings.Contains(text, "://"):
		return Cell{Text: text, target: text}
	}
	return Cell{Text: text, target: (&url.URL{Path: text}).EscapedPath()}
}
