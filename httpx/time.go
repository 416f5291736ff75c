package httpx

import (
	"strings"
	"time"
)

const badTime = "must be an RFC 3339 timestamp with a time zone, between the years 1970 and 9999, " +
	"for example 2026-11-21T08:30:00Z"

// timeLayout is RFC 3339 in UTC, with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// appendTime appends t as a JSON string, and the zero time as null.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return t.UTC().AppendFormat(b, `"`+timeLayout+`"`)
}

// parseTime reads a timestamp as strictly as RFC 3339 defines it, and returns it in UTC. Package time checks the
// calendar, but accepts one-digit hours, commas and time zones of 24 hours, so the form is checked first.
func parseTime(text string) (time.Time, bool) {
	if len(text) > 64 || !timeForm(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, false
	}
	t = t.UTC()
	if t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}

func timeForm(s string) bool {
	const whole = "0000-00-00T00:00:00"
	if len(s) <= len(whole) || !form(s[:len(whole)], whole) {
		return false
	}
	s = s[len(whole):]
	if s[0] == '.' {
		zone := strings.TrimLeft(s[1:], "0123456789")
		if len(zone) == len(s)-1 {
			return false
		}
		s = zone
	}
	if s == "Z" {
		return true
	}
	return (form(s, "+00:00") || form(s, "-00:00")) && s[1:3] < "24" && s[4:6] < "60"
}

// form reports whether s has the form of the pattern, in which 0 stands for any digit.
func form(s, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] == '0' {
			if s[i] < '0' || s[i] > '9' {
				return false
			}
		} else if s[i] != pattern[i] {
			return false
		}
	}
	return true
}
