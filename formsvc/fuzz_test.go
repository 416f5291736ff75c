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

// FuzzStoredAnswers checks that no text causes a panic, that the result agrees with encoding/json,
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
		if jsonErr := json.Unmarshal([]byte(answers.JSON()), &want); (jsonErr == nil) != (err == nil) {
			t.Fatalf("%q: %v, but encoding/json says %v", text, err, jsonErr)
		}
		if err != nil {
			return
		}
		names := make(map[string]bool)
		for _, a := range list {
			if value, ok := want[a.Name]; !ok || !slices.Equal(a.Value, value.Value) {
				t.Fatalf("%q: %q is read as %q, want %q", text, a.Name, a.Value, value.Value)
			}
			names[a.Name] = true
		}
		if len(names) != len(want) {
			t.Fatalf("%q: %d of %d answers", text, len(names), len(want))
		}
		if len(names) < len(list) {
			return // not possible in stored text: a duplicate name
		}
		again, err := formsvc.NewAnswers(list...).List()
		if err != nil || !sameAnswers(again, list) {
			t.Fatalf("%q: written and read again %q, %v", text, again, err)
		}
	})
}

// FuzzNewAnswers checks that the text is JSON and round-trips.
func FuzzNewAnswers(f *testing.F) {
	f.Add("a", "x")
	f.Add("\xff", "\x00\"\\\u2028")
	f.Fuzz(func(t *testing.T, first, second string) {
		list := []formsvc.Answer{answer(first, second, ""), answer(second)}
		answers := formsvc.NewAnswers(list...)
		if !json.Valid([]byte(answers.JSON())) || !utf8.ValidString(answers.JSON()) {
			t.Fatalf("%q is written %q", list, answers.JSON())
		}
		got, err := answers.List()
		if err != nil {
			t.Fatal(err)
		}
		if first != second && utf8.ValidString(first) && utf8.ValidString(second) && !sameAnswers(got, list) {
			t.Fatalf("%q comes back as %q", list, got)
		}
	})
}

// FuzzEmail checks that accepted addresses are bare addresses by RFC 5322 with a valid length.
func FuzzEmail(f *testing.F) {
	for _, s := range []string{
		"a@b", "a.b+c@d-e.f", `"a b"@c`, "a@[::1]", "é@é", "a@b\x00", "Ada <a@b>", "=?utf-8?q?a?=@b", ".@.", "a@b, c@d",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		simple, valid := formsvc.SimpleEmail(s), formsvc.ValidEmail(s)
		if simple && !valid && len(s) <= 254 {
			t.Fatalf("%q is simple, but refused", s)
		}
		if !simple && !valid {
			return
		}
		a, err := mail.ParseAddress(s)
		if err != nil || a.Name != "" || a.Address != s {
			t.Fatalf("%q is accepted, but ParseAddress says %v, %v", s, a, err)
		}
		if valid && (len(s) > 254 || strings.ContainsAny(s, " \r\n<>\x00") || !utf8.ValidString(s)) {
			t.Fatalf("%q is accepted", s)
		}
	})
}

// FuzzModuleValue checks that no value causes a panic, and that each type accepts only values that
// other parsers accept.
func FuzzModuleValue(f *testing.F) {
	types := []formsvc.ModuleType{"text", "email", "url", "number", "date", "boolean", "choice"}
	for i, c := range valueCases {
		for _, value := range slices.Concat(c.good, c.bad) {
			f.Add(i, c.module.MaxLength, value)
		}
	}
	f.Fuzz(func(t *testing.T, kind, maxLength int, value string) {
		m := formsvc.Module{Type: types[uint(kind)%uint(len(types))], MaxLength: maxLength, Options: []string{"a", ""}}
		if formsvc.CheckValue(&m, value) != "" {
			return
		}
		if maxLength > 0 && utf8.RuneCountInString(value) > maxLength {
			t.Fatalf("%q is longer than %d", value, maxLength)
		}
		if !readable(m.Type, value) {
			t.Fatalf("%q is accepted by a module of type %s", value, m.Type)
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
