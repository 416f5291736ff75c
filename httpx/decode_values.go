package httpx

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/formsvc/toolkit/formsvc"
)

// object enters an object. It records any other value as an error and skips it.
func (d *decoder) object() bool { return d.enter(jsontext.KindBeginObject, "must be an object") }

// array enters an array. It records any other value as an error and skips it.
func (d *decoder) array() bool { return d.enter(jsontext.KindBeginArray, "must be an array") }

func (d *decoder) enter(kind jsontext.Kind, detail string) bool {
	if d.err != nil {
		return false
	}
	if d.json.PeekKind() == kind {
		return d.token()
	}
	d.wrongType(detail)
	return false
}

func (d *decoder) wrongType(detail string) {
	d.skip()
	d.fault("invalid_type", detail)
}

// unknown records an unknown field and skips its value.
func (d *decoder) unknown() {
	d.skip()
	d.fault("unknown_member", "is an unknown field")
}

// member moves to the next field of an object and sets d.name until the next value is read. At the end it leaves the
// object and returns false. A name that is too long or has a NUL character is recorded as an error and skipped.
func (d *decoder) member() bool {
	for d.err == nil {
		if d.json.PeekKind() == jsontext.KindEndObject {
			d.token()
			return false
		}
		raw, err := d.json.ReadValue()
		if err != nil {
			d.syntax(err)
			return false
		}
		var nul bool
		switch d.name, nul = d.unquote(raw); {
		case nul:
			d.skip()
			d.fault("nul_not_allowed", "a field's name must not contain the NUL character")
		case len(d.name) > maxName:
			// The name would be copied into the pointer of every error below it.
			d.skip()
			d.fault("too_long", "a field's name must have at most "+strconv.Itoa(maxName)+" bytes")
		default:
			return true
		}
	}
	return false
}

// element moves to the next element of an array. At the end it leaves the array and returns false.
func (d *decoder) element() bool {
	if d.err != nil {
		return false
	}
	if d.json.PeekKind() == jsontext.KindEndArray {
		d.token()
		return false
	}
	return true
}

// overflow skips the rest of a list that is longer than any list may be. Call it when the next element, or the value of
// the next field, is due.
func (d *decoder) overflow() {
	depth := d.json.StackDepth()
	for d.json.StackDepth() >= depth && d.token() {
		if d.json.StackDepth() > maxDepth {
			d.failTooDeep()
			return
		}
	}
	d.note("too_many", "must have at most "+strconv.Itoa(maxMembers)+" members")
}

// unquote returns the text of a JSON string, and whether it has a NUL character. The text is valid until the next call.
func (d *decoder) unquote(raw []byte) (text []byte, nul bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], false
	}
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], raw) // raw is checked already
	return d.scratch, bytes.IndexByte(d.scratch, 0) >= 0
}

// null skips a null and reports whether there was one.
func (d *decoder) null() bool {
	return d.err == nil && d.json.PeekKind() == jsontext.KindNull && d.token()
}

// text reads a string. It records any other value as an error. The text is valid until the next call.
func (d *decoder) text() ([]byte, bool) {
	if d.err != nil {
		return nil, false
	}
	if d.json.PeekKind() != jsontext.KindString {
		d.wrongType("must be a string")
		return nil, false
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	text, nul := d.unquote(raw)
	if nul {
		d.fault("nul_not_allowed", "must not contain the NUL character")
	}
	return text, !nul
}

// string reads a string.
func (d *decoder) string() (s string, ok bool) {
	text, ok := d.text()
	if !ok {
		return "", false
	}
	return d.strings.string(text), true
}

// optionalString reads a string; null means absent.
func (d *decoder) optionalString() string {
	if d.null() {
		return ""
	}
	s, _ := d.string()
	return s
}

// stringList reads an array of strings.
func (d *decoder) stringList() []string {
	var list []string
	if !d.array() {
		return nil
	}
	for n := 0; d.element(); n++ {
		if n == maxMembers {
			d.overflow()
			break
		}
		s, _ := d.string()
		list = append(list, s) // also if it is invalid, so that the others keep their position
	}
	return list
}

// optionalBool reads true or false; null means absent.
func (d *decoder) optionalBool() bool {
	if d.null() || d.err != nil {
		return false
	}
	kind := d.json.PeekKind()
	if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		d.wrongType("must be true or false")
		return false
	}
	return d.token() && kind == jsontext.KindTrue
}

// optionalInt reads an integer; null means absent. It refuses fractions and exponents, so that no number is rounded.
func (d *decoder) optionalInt() int {
	if d.null() || d.err != nil {
		return 0
	}
	if d.json.PeekKind() != jsontext.KindNumber {
		d.wrongType("must be an integer")
		return 0
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		d.syntax(err)
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || string(raw) == "-0" {
		d.fault("invalid_integer", "must be an integer of at most "+strconv.Itoa(math.MaxInt32))
		return 0
	}
	return int(n)
}

// optionalWord reads a string that must not be empty; null means absent. For an empty or invalid string it returns one
// that the service refuses: returning "" would mean absent, and lose the error. The service then reports it with all
// others.
func (d *decoder) optionalWord() string {
	if d.null() {
		return ""
	}
	if s, _ := d.string(); s != "" {
		return s
	}
	return " "
}

// optionalTime reads a timestamp; null means absent.
func (d *decoder) optionalTime() time.Time {
	if d.null() {
		return time.Time{}
	}
	return d.time()
}

// time reads a timestamp.
func (d *decoder) time() time.Time {
	text, ok := d.text()
	if !ok {
		return time.Time{}
	}
	t, ok := parseTime(string(text))
	if !ok {
		d.fault("invalid_timestamp", badTime)
	}
	return t
}

// optionalID reads an identifier; null means absent.
func (d *decoder) optionalID() formsvc.ID {
	if d.null() {
		return ""
	}
	s, ok := d.string()
	if !ok {
		return ""
	}
	id, ok := formsvc.ParseID(s)
	if !ok {
		d.fault("invalid_uuid", "must be a UUID")
	}
	return id
}

// A stringArena allocates many strings in few chunks. A string that is kept keeps at most arenaChunk bytes alive.
type stringArena struct {
	chunk strings.Builder
	hint  int // a guess of the bytes still needed
}

const arenaChunk = 2 << 10

func (a *stringArena) string(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if a.chunk.Cap()-a.chunk.Len() < len(text) {
		if len(text) > arenaChunk/4 {
			return string(text)
		}
		a.chunk = strings.Builder{}
		a.chunk.Grow(max(len(text), min(a.hint, arenaChunk)))
	}
	start := a.chunk.Len()
	a.chunk.Write(text)
	return a.chunk.String()[start:]
}
