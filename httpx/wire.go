package httpx

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// Types of the members of bodies. They refuse what package json would take for a default, such as null for a string.

// maxMembers is the limit of the elements of a list, so that small elements can't become large structs by the million.
const maxMembers = 2_000

// wrong skips a value and returns the problem for its type.
func wrong(dec *jsontext.Decoder, detail string) error {
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return unfit(dec.StackPointer(), "invalid_type", detail)
}

// null skips a null and reports whether there was one.
func null(dec *jsontext.Decoder) bool {
	return dec.PeekKind() == jsontext.KindNull && dec.SkipValue() == nil
}

// readText reads a string.
func readText(dec *jsontext.Decoder) (string, error) {
	if kind := dec.PeekKind(); kind != jsontext.KindString && kind != jsontext.KindInvalid {
		return "", wrong(dec, "must be a string")
	}
	token, err := dec.ReadToken()
	if err != nil {
		return "", err
	}
	s := token.String()
	if strings.IndexByte(s, 0) >= 0 {
		return "", unfit(dec.StackPointer(), "nul_not_allowed", noNUL)
	}
	return s, nil
}

// text is a string.
type text string

func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	s, err := readText(dec)
	*t = text(s)
	return err
}

// optional is a string; null means absent.
type optional string

func (t *optional) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	return (*text)(t).UnmarshalJSONFrom(dec)
}

// word is a string that must not be empty; null means absent. For an empty one it has one that the service refuses, with all
// other faults: "" would mean absent.
type word string

func (t *word) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	s, err := readText(dec)
	if *t = word(s); s == "" {
		*t = " "
	}
	return err
}

// timestamp is a time; null means absent.
type timestamp struct{ time.Time }

func (t *timestamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	s, err := readText(dec)
	if err != nil {
		return err
	}
	var ok bool
	if t.Time, ok = parseTime(s); !ok {
		return unfit(dec.StackPointer(), "invalid_timestamp", badTime)
	}
	return nil
}

// identifier is a UUID; null means absent.
type identifier formsvc.ID

func (t *identifier) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	s, err := readText(dec)
	if err != nil {
		return err
	}
	id, ok := formsvc.ParseID(s)
	if *t = identifier(id); !ok {
		return unfit(dec.StackPointer(), "invalid_uuid", "must be a UUID")
	}
	return nil
}

// ignored is any value.
type ignored struct{}

func (*ignored) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }

// member is a value for which it matters whether it is there, perhaps as null.
type member[T any] struct {
	value       T
	there, null bool
}

func (m *member[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	m.there = true
	if m.null = null(dec); m.null {
		return nil
	}
	return json.UnmarshalDecode(dec, &m.value)
}

// array is an array of bounded length.
type array[T any] []T

func (l *array[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return elements(dec, func() error {
		if len(*l) == maxMembers {
			return tooMany(dec)
		}
		var v T
		err := json.UnmarshalDecode(dec, &v)
		*l = append(*l, v)
		return err
	})
}

// pairs is an object of strings; null means absent.
type pairs map[string]string

func (p *pairs) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if null(dec) {
		return nil
	}
	*p = make(pairs)
	return members(dec, "must be an object", func(name string) (err error) {
		if len(*p) == maxMembers {
			return tooMany(dec)
		}
		(*p)[name], err = readText(dec)
		return err
	})
}

// tooMany returns the error for a list that is longer than any may be. It is a rule, but reading ends here.
func tooMany(dec *jsontext.Decoder) error {
	return &formsvc.ValidationError{Fields: []formsvc.FieldError{{
		Pointer: bounded(dec.StackPointer().Parent()), Code: "too_many", Detail: "must have at most " + strconv.Itoa(maxMembers) + " members",
	}}}
}

// members calls do for each member of an object, when its value is next.
func members(dec *jsontext.Decoder, detail string, do func(name string) error) error {
	return each(dec, jsontext.KindBeginObject, jsontext.KindEndObject, detail, func() error {
		name, err := readText(dec)
		if err != nil {
			return err
		}
		return do(name)
	})
}

// elements calls do for each element of an array, when it is next.
func elements(dec *jsontext.Decoder, do func() error) error {
	return each(dec, jsontext.KindBeginArray, jsontext.KindEndArray, "must be an array", do)
}

func each(dec *jsontext.Decoder, begin, end jsontext.Kind, detail string, do func() error) error {
	if kind := dec.PeekKind(); kind != begin && kind != jsontext.KindInvalid {
		return wrong(dec, detail)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != end {
		if err := do(); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
