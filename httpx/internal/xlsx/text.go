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

// number returns a number and its style, or "" if Excel would change it: it keeps 15 digits.
func number(text string) (value string, style int) {
	digits, _, exponent := strings.Cut(strings.ToLower(text), "e")
	whole := !exponent && !strings.Contains(digits, ".")
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	x, err := strconv.ParseFloat(text, 64)
	size := math.Abs(x)
	if !formsvc.ValidNumber(text) || err != nil || len(digits) > 15 || digits != "" && (size < 0x1p-1022 || size > 9.99999999999999e307) {
		return "", 0
	}
	if whole && len(text) > 11 { // Excel would show 1.23E+11
		return text, wholeStyle
	}
	return text, int(Number)
}

// serial returns a time as days since the end of 1899, or "" before March 1900, since Excel counts a day too many there.
func serial(at time.Time) string {
	_, offset := at.Zone()
	days := float64(at.Unix()+int64(offset))/(24*60*60) + 25_569
	if days < 61 {
		return ""
	}
	return strconv.FormatFloat(days, 'f', -1, 64)
}

// target returns what a link leads to, or "" for what can't be a link: several lines, or a path without a host.
func target(text string) string {
	switch {
	case strings.Contains(text, "\n") || strings.HasPrefix(text, "/"):
		return ""
	case strings.Contains(text, "://"):
		return text
	}
	return (&url.URL{Path: text}).EscapedPath()
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
