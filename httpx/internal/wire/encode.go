package wire

import (
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
