package wire

import (
	"regexp"
	"time"
)

// BadTime is the detail of an error.
const BadTime = "must be an RFC 3339 timestamp with a time zone, between the years 1970 and 9999, " +
	"for example 2026-11-21T08:30:00Z"

// TimeLayout is RFC 3339 in UTC, with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// AppendTime appends t as a JSON string, and the zero time as null.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return t.UTC().AppendFormat(b, `"`+TimeLayout+`"`)
}

// timeForm is a timestamp of RFC 3339. Package time checks the calendar, but accepts one-digit hours, commas and time zones of 24
// hours.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,40})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime reads a timestamp as strictly as RFC 3339 defines it, and returns it in UTC.
func ParseTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	t = t.UTC()
	return t, err == nil && timeForm.MatchString(text) && t.Year() >= 1970 && t.Year() <= 9999
}
