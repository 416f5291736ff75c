package httpx

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// Limits for reading a body, applied before anything in it is known to be valid.
const (
	maxDepth   = 64    // nested objects and arrays
	maxMembers = 2_000 // elements of a list, so that small elements can't become large structs by the million
	maxName    = 1_000 // bytes of a field name; module names have at most 200 characters
	maxPointer = 1_500 // bytes of a pointer in a reply
)

// A decoder reads one JSON object strictly. It goes on after an invalid field, to find all of them. At the first syntax
// error it sets err and stops; then its methods do nothing.
type decoder struct {
	raw     []byte
	source  bytes.Buffer
	json    jsontext.Decoder
	name    []byte // of the field that the next value belongs to
	scratch []byte
	strings stringArena
	faults  faults
	hasUser bool // whether a new response has a user, see withoutUser
	err     error
}

// faults collects the errors of an input.
type faults struct {
	list  []formsvc.FieldError
	shape bool     // whether one of them is about the shape rather than a rule
	query *problem // the error of the query, which is listed first; nil: none
}

func (f *faults) add(pointer, code, detail string) {
	if len(f.list) < MaxErrors {
		f.list = append(f.list, formsvc.FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
}

// reset clears the body and everything read from it.
func (d *decoder) reset() {
	d.raw = d.raw[:0]
	d.source = bytes.Buffer{}
	d.name, d.err = nil, nil
	d.strings = stringArena{}
	d.faults, d.hasUser = faults{}, false
	if cap(d.raw) > keep {
		// The decoder's buffers grow with the body, so drop them.
		d.raw, d.json = nil, jsontext.Decoder{}
	}
	if cap(d.scratch) > keep {
		d.scratch = nil
	}
}

// none reports whether there is no body.
func (d *decoder) none() bool { return len(d.raw) == 0 }

// open begins reading and enters the object. It reports whether there is one.
func (d *decoder) open() bool {
	switch {
	case len(bytes.TrimLeft(d.raw, " \t\r\n")) == 0:
		d.fail("empty_body", "", "The body must be a JSON object.")
	case bytes.HasPrefix(d.raw, []byte("\uFEFF")):
		d.fail("byte_order_mark", "", "The body must not begin with a byte order mark.")
	}
	if d.err != nil {
		return false
	}
	d.source = *bytes.NewBuffer(d.raw)
	d.json.Reset(&d.source)
	d.strings.hint = len(d.raw)
	switch d.json.PeekKind() {
	case jsontext.KindBeginObject:
		return d.token()
	case jsontext.KindBeginArray, jsontext.KindNull, jsontext.KindTrue, jsontext.KindFalse,
		jsontext.KindString, jsontext.KindNumber:
		d.fail("not_an_object", "", "The body must be a JSON object.")
	default:
		d.token()
	}
	return false
}

// close checks that nothing follows the object, and returns all errors.
func (d *decoder) close() error {
	if d.err == nil {
		switch _, err := d.json.ReadToken(); {
		case errors.Is(err, io.EOF):
		case d.at(err) < len(d.raw) && d.raw[d.at(err)] == 0:
			d.syntax(err)
		default:
			d.fail("trailing_data", "", "The body must be one JSON object and nothing after it.")
		}
	}
	switch {
	case d.err != nil:
		return d.err
	case len(d.faults.list) == 0:
		return nil
	case d.faults.shape:
		return d.faults.refusal(d.faults.list)
	}
	return &formsvc.ValidationError{Fields: d.faults.list}
}

// refuse returns the problem for an invalid body. ask calls the method that would have taken the input, so that the
// errors that the service's rules find are reported too.
func (h *Handler) refuse(c *call, err error, ask func(*formsvc.Service) error) error {
	faults := &c.body.faults
	if c.body.err != nil || len(faults.list) == 0 { // the body wasn't read to its end
		return err
	}
	all, ok := errors.AsType[*formsvc.ValidationError](ask(h.svc.Refusing(faults.list)))
	switch {
	case !ok: // there is no such record, or the rules can't be checked now
		return err
	case faults.shape:
		return faults.refusal(all.Fields)
	}
	return all
}

// refusal returns one problem for all errors of a request.
func (f *faults) refusal(all []formsvc.FieldError) *problem {
	if f.query != nil {
		if len(all) > len(f.query.fields) {
			f.query.detail = "The query has invalid parameters; errors lists them, and the faults of the body."
		}
		f.query.fields = all
		return f.query
	}
	return &problem{
		status: http.StatusBadRequest, code: "invalid_body", fields: all,
		detail: "The body has invalid fields; errors lists them.",
	}
}

// fail stops decoding with an error code of its own.
func (d *decoder) fail(code string, pointer jsontext.Pointer, detail string) {
	p := &problem{status: http.StatusBadRequest, code: code, detail: detail}
	if pointer != "" {
		p.fields = []formsvc.FieldError{{Pointer: bounded(pointer), Code: code, Detail: detail}}
	}
	if query := d.faults.query; query != nil {
		p = d.faults.refusal(append(query.fields, formsvc.FieldError{Pointer: bounded(pointer), Code: code, Detail: detail}))
	}
	d.err = p
}

// at returns the offset of a syntax error in the body.
func (d *decoder) at(err error) int {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok && s.ByteOffset < int64(len(d.raw)) {
		return int(s.ByteOffset)
	}
	return len(d.raw)
}

// syntax stops decoding at a syntax error.
func (d *decoder) syntax(err error) {
	s, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok { // the body is cut short, or empty
		d.fail("malformed_json", "", "The body ends too early.")
		return
	}
	at := d.at(err)
	rest := d.raw[at:]
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		d.fail("duplicate_member", s.JSONPointer, "The field appears twice.")
	case len(rest) > 0 && rest[0] == 0:
		d.faults.shape = true
		d.faults.add(bounded(s.JSONPointer), "nul_not_allowed", "must not contain the NUL character")
		d.err = d.faults.refusal(d.faults.list)
	case loneSurrogate(rest):
		d.fail("lone_surrogate", s.JSONPointer, "A string has half of a surrogate pair.")
	case !utf8.Valid(d.raw):
		d.fail("invalid_utf8", s.JSONPointer, "The body must be UTF-8.")
	case len(rest) == 0:
		d.fail("malformed_json", s.JSONPointer, "The body ends too early.")
	default:
		d.fail("malformed_json", s.JSONPointer, "The body is not JSON from byte "+strconv.Itoa(at)+" on.")
	}
}

// loneSurrogate reports whether text begins with the escape of a surrogate.
func loneSurrogate(text []byte) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' &&
		(text[3]|0x20 >= 'a' && text[3]|0x20 <= 'f' || text[3] == '8' || text[3] == '9') &&
		isHex(text[4]) && isHex(text[5])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// bounded returns the pointer, or that of an enclosing object if the pointer is too long to repeat or has a NUL
// character.
func bounded(p jsontext.Pointer) string {
	for len(p) > maxPointer || strings.IndexByte(string(p), 0) >= 0 {
		p = p.Parent()
	}
	return string(p)
}

// fault records that the value just read or skipped has the wrong shape.
func (d *decoder) fault(code, detail string) {
	d.faults.shape = true
	d.note(code, detail)
}

// note records that the value just read or skipped breaks a rule.
func (d *decoder) note(code, detail string) {
	if d.err == nil && len(d.faults.list) < MaxErrors {
		d.faults.add(bounded(d.json.StackPointer()), code, detail)
	}
}

// token reads a token that PeekKind announced.
func (d *decoder) token() bool {
	if _, err := d.json.ReadToken(); err != nil {
		d.syntax(err)
		return false
	}
	return true
}

// skip skips one value of any kind.
func (d *decoder) skip() {
	if d.err != nil {
		return
	}
	for depth := d.json.StackDepth(); ; {
		if !d.token() {
			return
		}
		switch now := d.json.StackDepth(); {
		case now > maxDepth:
			d.failTooDeep()
			return
		case now <= depth:
			return
		}
	}
}

func (d *decoder) failTooDeep() {
	d.fail("too_deep", "", "The body must not nest deeper than "+strconv.Itoa(maxDepth)+" levels.")
}
