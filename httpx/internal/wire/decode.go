package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
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
	if err := json.Unmarshal(d.Raw, v, json.RejectUnknownMembers(true), domainTypes); err != nil {
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
		return unknownField(s.JSONPointer)
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

func unknownField(pointer jsontext.Pointer) *Problem {
	return unfit(pointer, "unknown_member", "is an unknown field")
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
func readText[T ~string](dec *jsontext.Decoder) (T, error) {
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
	return T(s), nil
}

// text is a string.
type text string

func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	*t, err = readText[text](dec)
	return err
}

// texts is an array of strings.
type texts[T ~string] []T

func (l *texts[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) (err error) {
	*l, err = listOf(readText[T])(dec)
	return err
}

// domainTypes reads the types of the domain's structs, so that bodies can have these. null means absent.
//
//nolint:gochecknoglobals // immutable
var domainTypes = json.WithUnmarshalers(json.JoinUnmarshalers(
	orNull(readText[string]), orNull(readWord[formsvc.CampaignStatus]), orNull(readWord[formsvc.ModuleType]), orNull(readBound), orNull(readTime),
	orNull(readID), orNull(readPicture), orNull(readPairs), orNull(listOf(readText[string])), orNull(listOf(readModule)), orNull(listOf(readOption)),
))

func orNull[T any](read func(*jsontext.Decoder) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *T) (err error) {
		if !null(dec) {
			*v, err = read(dec)
		}
		return err
	})
}

// readWord reads a string that must not be empty. For an empty one it returns one that the service refuses, with all other faults: ""
// would mean absent.
func readWord[T ~string](dec *jsontext.Decoder) (T, error) {
	s, err := readText[T](dec)
	return cmp.Or(s, " "), err
}

// readBound reads the least or greatest value of a module: a number, or a string such as a date.
func readBound(dec *jsontext.Decoder) (formsvc.Bound, error) {
	switch dec.PeekKind() {
	case jsontext.KindNumber:
		value, err := dec.ReadValue()
		return formsvc.Bound(value), err
	case jsontext.KindString, jsontext.KindInvalid:
		return readText[formsvc.Bound](dec)
	}
	return "", wrong(dec, "must be a number, or a day or time as a string")
}

func readTime(dec *jsontext.Decoder) (time.Time, error) {
	s, err := readText[string](dec)
	t, ok := ParseTime(s)
	if err == nil && !ok {
		err = unfit(dec.StackPointer(), "invalid_timestamp", BadTime)
	}
	return t, err
}

func readID(dec *jsontext.Decoder) (formsvc.ID, error) {
	s, err := readText[string](dec)
	id, ok := formsvc.ParseID(s)
	if err == nil && !ok {
		err = unfit(dec.StackPointer(), "invalid_uuid", "must be a UUID")
	}
	return id, err
}

// readPicture decodes base64. Other texts are no pictures either, so the service refuses them with all other faults.
func readPicture(dec *jsontext.Decoder) ([]byte, error) {
	s, err := readText[string](dec)
	content, bad := base64.StdEncoding.DecodeString(s)
	if bad != nil {
		content = []byte(s)
	}
	return content, err
}

// readPairs reads an object of strings.
func readPairs(dec *jsontext.Decoder) (map[string]string, error) {
	pairs := make(map[string]string)
	err := members(dec, "must be an object", func(name string) (err error) {
		pairs[name], err = readText[string](dec)
		return err
	})
	return pairs, err
}

// listOf returns a function that reads an array of bounded length.
func listOf[T any](read func(*jsontext.Decoder) (T, error)) func(*jsontext.Decoder) ([]T, error) {
	return func(dec *jsontext.Decoder) (list []T, err error) {
		err = elements(dec, func() error {
			if len(list) == maxMembers {
				return tooMany(dec)
			}
			v, err := read(dec)
			list = append(list, v)
			return err
		})
		return list, err
	}
}

// unknown is a field that a body can't have, although an embedded struct has it.
type unknown struct{}

func (*unknown) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unknownField(dec.StackPointer())
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

// pairsPatch is a merge patch of an object of strings: null removes a name.
type pairsPatch map[string]*string

func (p *pairsPatch) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*p = make(pairsPatch)
	return members(dec, "must be an object", func(name string) error {
		if (*p)[name] = nil; null(dec) {
			return nil
		}
		value, err := readText[string](dec)
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
		name, err := readText[string](dec)
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
