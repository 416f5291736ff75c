package formsvc_test

import (
	"encoding/json"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// FuzzStoredAnswers checks that no text causes a panic, that a result agrees with encoding/json,
// and that it round-trips.
func FuzzStoredAnswers(f *testing.F) {
	for _, text := range []string{
		"", "{}", "null", "[]", "{", `{"a":{"value":["x","y"]},"b":{"value":[]}}`, ` { "a" : { "value" : [ "\u0061" ] } } `,
		`{"a":{"value":["x"]},"\u0061":{"value":["y"]}}`, `{"\ud800":{"VALUE":["\"}{"]}}`, `{"a":{"x":{"b":1},"value":null}}`,
		`{"a\\":{"value":["\\"]},"":{}}`, `{"a":null}`, "{\"a\xff\":{}}", `{"a":{"value":["x"]}},`, `{"a`, `{"a\`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answers := formsvc.StoredAnswers(text)
		_, _ = answers.Get("a")
		list, err := answers.List()
		var want map[string]jsonAnswer
		if err != nil || !utf8.ValidString(text) {
			return
		}
		if err := json.Unmarshal([]byte(answers.JSON()), &want); err != nil {
			t.Fatalf("%q is read as %q, but encoding/json says %v", text, list, err)
		}
		if len(want) < len(list) {
			return // not possible in stored text: a duplicate name
		}
		for _, a := range list {
			if value, ok := want[a.Name]; !ok || !slices.Equal(a.Value, value.Value) {
				t.Fatalf("%q: %q is read as %q, want %q", text, a.Name, a.Value, value.Value)
			}
		}
		again, err := formsvc.NewAnswers(list...).List()
		if err != nil || !sameAnswers(again, list) {
			t.Fatalf("%q: written and read again %q, %v", text, again, err)
		}
	})
}

// readable reports whether another parser accepts the value for the type.
func readable(kind formsvc.ModuleType, value string) bool {
	switch kind {
	case formsvc.EmailModule:
		_, err := mail.ParseAddress(value)
		return err == nil
	case formsvc.URLModule:
		u, err := url.Parse(value)
		return err == nil && u.IsAbs() && u.Hostname() != ""
	case formsvc.NumberModule:
		return json.Valid([]byte(value)) && strings.IndexAny(value, "-0123456789") == 0 && strings.TrimSpace(value) == value
	case formsvc.DateModule:
		day, err := time.Parse(time.DateOnly, value)
		return err == nil && day.Format(time.DateOnly) == value
	case formsvc.BooleanModule:
		return value == "true" || value == "false"
	case formsvc.ChoiceModule:
		return value == "a" || value == ""
	default:
		return true
	}
}
