package wire

import (
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s as a JSON string. It replaces invalid UTF-8, which no store returns, by U+FFFD.
func AppendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// replyFormat is how replies are encoded: the same campaign always has the same bytes.
//
//nolint:gochecknoglobals // immutable
var replyFormat = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, t time.Time) error {
		return to.WriteValue(AppendTime(to.AvailableBuffer(), t))
	})))

// AppendReply appends v, plain data, as JSON.
func AppendReply(b []byte, v any) []byte {
	text, err := json.Marshal(v, replyFormat)
	if err != nil {
		panic(err)
	}
	return append(b, text...)
}

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
