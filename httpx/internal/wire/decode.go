package wire

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// maxPointer is the limit in bytes of a pointer in a reply.
const maxPointer = 1_500

// NoNUL is the detail of an error.
const NoNUL = "must not contain the NUL character"

// FreeBody is how many bytes of each body don't count as memory.
const FreeBody = 16 << 10

// Faults collects the errors of an input.
type Faults []formsvc.FieldError

// Add adds an error, unless there are [MaxErrors].
func (f *Faults) Add(pointer, code, detail string) {
	if len(*f) < MaxErrors {
		*f = append(*f, formsvc.FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
}

// A Body decodes the body of a request, one JSON object, into the structs of the decode_ files. A body that doesn't fit is
// refused at its first place with 400; all rules that one breaks are found later, by the service.
type Body struct {
	Raw    []byte
	Noted  Faults // broken rules that the service doesn't see, for it to list with all others
	nobody string // the pointer of a person that is missing, see WithoutPerson; "" for none
}

// Reset clears the body and everything read from it.
func (d *Body) Reset() {
	d.Raw, d.Noted, d.nobody = d.Raw[:0], nil, ""
	if cap(d.Raw) > FreeBody { // memory is reserved when a buffer grows, so a large one isn't kept
		d.Raw = nil
	}
}

// none reports whether there is no body.
func (d *Body) none() bool { return len(d.Raw) == 0 }

// decode decodes the body into v, a pointer to a struct.
func (d *Body) decode(v any) error {
	text := bytes.TrimLeft(d.Raw, " \t\r\n")
	switch {
	case len(text) == 0:
		return BadRequest("empty_body", "The body must be a JSON object.")
	case bytes.HasPrefix(text, []byte("\uFEFF")):
		return BadRequest("byte_order_mark", "The body must not begin with a byte order mark.")
	case strings.IndexByte(`["tfn-0123456789`, text[0]) >= 0:
		return BadRequest("not_an_object", "The body must be a JSON object.")
	}
	if err := json.Unmarshal(d.Raw, v, json.RejectUnknownMembers(true)); err != nil {
		return d.misfit(err)
	}
	return nil
}

// misfit returns the problem for an error of the json package, or of one of the types below.
func (d *Body) misfit(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if rule, ok := errors.AsType[*formsvc.ValidationError](err); ok {
		return rule
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return d.syntax(s)
	}
	s, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	if errors.Is(s.Err, json.ErrUnknownName) {
		return unfit(s.JSONPointer, "unknown_member", "is an unknown field")
	}
	switch kind := s.GoType.Kind(); {
	case kind == reflect.Bool:
		return unfit(s.JSONPointer, "invalid_type", "must be true or false")
	case kind == reflect.Struct:
		return unfit(s.JSONPointer, "invalid_type", "must be an object")
	case s.JSONKind == jsontext.KindNumber:
		return unfit(s.JSONPointer, "invalid_integer", "must be an integer with at most 32 bits")
	default:
		return unfit(s.JSONPointer, "invalid_type", "must be an integer")
	}
}

// unfit returns the problem for a value that doesn't fit.
func unfit(pointer jsontext.Pointer, code, detail string) *Problem {
	p := BadRequest("invalid_body", "The body has the wrong shape; errors names the first problem.")
	p.Fields = []formsvc.FieldError{{Pointer: bounded(pointer), Code: code, Detail: detail}}
	return p
}

// badPlace returns a problem with a code of its own and the place, unless that is the whole body.
func badPlace(code string, pointer jsontext.Pointer, detail string) *Problem {
	p := BadRequest(code, detail)
	if pointer != "" {
		p.Fields = []formsvc.FieldError{{Pointer: bounded(pointer), Code: code, Detail: detail}}
	}
	return p
}

// syntax returns the problem for a syntax error.
func (d *Body) syntax(s *jsontext.SyntacticError) *Problem {
	at := min(int(s.ByteOffset), len(d.Raw))
	rest := d.Raw[at:]
	switch {
	case errors.Is(s, jsontext.ErrDuplicateName):
		return badPlace("duplicate_member", s.JSONPointer, "The field appears twice.")
	case len(rest) > 0 && rest[0] == 0:
		return unfit(s.JSONPointer, "nul_not_allowed", NoNUL)
	case jsontext.Value(d.Raw[:at]).IsValid():
		return BadRequest("trailing_data", "The body must be one JSON object and nothing after it.")
	case loneSurrogate.Match(rest):
		return badPlace("lone_surrogate", s.JSONPointer, "A string has half of a surrogate pair.")
	case !utf8.Valid(d.Raw):
		return badPlace("invalid_utf8", s.JSONPointer, "The body must be UTF-8.")
	case len(rest) == 0:
		return badPlace("malformed_json", s.JSONPointer, "The body ends too early.")
	default:
		return badPlace("malformed_json", s.JSONPointer, "The body is not JSON from byte "+strconv.Itoa(at)+" on.")
	}
}

// loneSurrogate is the escape of a surrogate.
var loneSurrogate = regexp.MustCompile(`^\\u[dD][89A-Fa-f][0-9A-Fa-f]{2}`)

// bounded returns the pointer, or that of an enclosing object if the pointer is too long to repeat or has a NUL
// character.
func bounded(p jsontext.Pointer) string {
	for len(p) > maxPointer || strings.IndexByte(string(p), 0) >= 0 {
		p = p.Parent()
	}
	return string(p)
}

// Types of the members of bodies. They refuse what package json would take for a default, such as null for a string.

// maxMembers is the limit of the elements of a list and fields of an object: small ones can become large structs.
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
		return "", unfit(dec.StackPointer(), "nul_not_allowed", NoNUL)
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

// bound is the least or greatest value of a module: a number, or a string such as a date; null means absent.
type bound formsvc.Bound

func (b *bound) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case jsontext.KindNumber:
		value, err := dec.ReadValue()
		*b = bound(value)
		return err
	case jsontext.KindString, jsontext.KindNull, jsontext.KindInvalid:
		return (*optional)(b).UnmarshalJSONFrom(dec)
	}
	return wrong(dec, "must be a number, or a day or time as a string")
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
	if t.Time, ok = ParseTime(s); !ok {
		return unfit(dec.StackPointer(), "invalid_timestamp", BadTime)
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
		(*p)[name], err = readText(dec)
		return err
	})
}

// pairsPatch is a merge patch of pairs: null removes a name.
type pairsPatch map[string]*string

func (p *pairsPatch) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*p = make(pairsPatch)
	return members(dec, "must be an object", func(name string) error {
		if (*p)[name] = nil; null(dec) {
			return nil
		}
		value, err := readText(dec)
		(*p)[name] = &value
		return err
	})
}

// tooMany returns the error for a list that is longer than any may be. It is a rule, but reading ends here.
func tooMany(dec *jsontext.Decoder) error {
	return &formsvc.ValidationError{Fields: []formsvc.FieldError{{
		Pointer: bounded(dec.StackPointer().Parent()), Code: "too_many", Detail: "must have at most " + strconv.Itoa(maxMembers) + " members",
	}}}
}

// members calls do for each member of an object of bounded length, when its value is next.
func members(dec *jsontext.Decoder, detail string, do func(name string) error) error {
	n := 0
	return each(dec, jsontext.KindBeginObject, jsontext.KindEndObject, detail, func() error {
		name, err := readText(dec)
		if err != nil {
			return err
		}
		if n++; n > maxMembers {
			return tooMany(dec)
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
