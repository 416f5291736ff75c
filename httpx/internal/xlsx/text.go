package xlsx

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Limits of a workbook. The first two are Excel's.
const (
	maxRows  = 1 << 20 // of a sheet
	maxText  = 32_767  // of a cell, in UTF-16 units
	maxLinks = 10_000  // that can be clicked, since memory holds them; further ones are texts
)

// exact reports whether a spreadsheet keeps the number as it is: with at most 15 digits, in the range of Excel.
func exact(text string) (style int, ok bool) {
	digits, _, exponent := strings.Cut(strings.ToLower(text), "e")
	whole := !exponent && !strings.Contains(digits, ".")
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	if whole && len(text) > 11 { // Excel would show 1.23E+11
		style = wholeStyle
	}
	x, err := strconv.ParseFloat(text, 64)
	size := math.Abs(x)
	return style, err == nil && len(digits) <= 15 && (digits == "" || size >= 0x1p-1022 && size <= 9.99999999999999e307)
}

// serial returns a time as days since the end of 1899. Earlier times than March 1900 have none, since Excel counts a day too many there.
func serial(at time.Time) (days string, ok bool) {
	_, offset := at.Zone()
	n := float64(at.Unix()+int64(offset))/(24*60*60) + 25_569
	return strconv.FormatFloat(n, 'f', -1, 64), n >= 61 && at.Year() <= 9999
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
		case r == '&' || r == '<' || r == '>' || r == '"':
			b = fmt.Appendf(b, "&#%d;", r)
		case r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF || r == '_' && escapeForm.MatchString(text[i:]):
			b = fmt.Appendf(b, "_x%04X_", r)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}
