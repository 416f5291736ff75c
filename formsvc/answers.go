package formsvc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An Answer is what a respondent entered for one module: an ordered list of values. An Answer
// without values was left empty on purpose.
type Answer struct {
	Name  string
	Value []string
}

// Answers holds the answers of a response in the order they were given, as the JSON text that stores keep and clients
// receive: {"name":{"value":["…"]},…}. The zero value has no answers. Answers is immutable.
type Answers struct{ text string }

// NewAnswers returns the given answers. It doesn't check names; services do.
func NewAnswers(list ...Answer) Answers {
	if len(list) == 0 {
		return Answers{}
	}
	b := append(make([]byte, 0, 512), '{')
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, a.Name), `:{"value":`...)
		b = append(appendStrings(b, a.Value), '}')
	}
	return Answers{string(append(b, '}'))}
}

// StoredAnswers returns the answers of a stored JSON text. It doesn't check the text, which must
// come from [Answers.JSON].
func StoredAnswers(text string) Answers {
	if text == "{}" {
		return Answers{}
	}
	return Answers{text}
}

// JSON returns the answers as a JSON object.
func (a Answers) JSON() string {
	if a.text == "" {
		return "{}"
	}
	return a.text
}

// MarshalJSON returns [Answers.JSON].
func (a Answers) MarshalJSON() ([]byte, error) { return []byte(a.JSON()), nil }

// UnmarshalJSON reads answers as [Answers.JSON] returns them, written by any program. null has none. Other members than
// value are ignored.
func (a *Answers) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*a = Answers{}
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	_, err := d.ReadToken() // names follow '{' only
	var list []Answer
	for err == nil && d.PeekKind() != '}' {
		var name string
		var answer struct {
			Value []string `json:"value"`
		}
		if err = json.UnmarshalDecode(d, &name); err == nil {
			err = json.UnmarshalDecode(d, &answer)
		}
		list = append(list, Answer{name, answer.Value})
	}
	if err == nil {
		*a = NewAnswers(list...)
	}
	return err
}

// List returns the answers in their order. The caller owns the result.
func (a Answers) List() (list []Answer, err error) {
	err = a.Each(func(name string, values []string) error {
		list = append(list, Answer{Name: name, Value: append([]string{}, values...)})
		return nil
	})
	return list, err
}

// Get returns the values of one module, and whether it was answered.
func (a Answers) Get(name string) (values []string, ok bool) {
	list, err := a.List()
	i := slices.IndexFunc(list, func(x Answer) bool { return x.Name == name })
	if err != nil || i < 0 {
		return nil, false
	}
	return list[i].Value, true
}

var errAnswersText = errors.New("formsvc: stored answers: not as they were written")

// Each calls see with every answer in order, and returns the first error. see must not keep values
// after it returns. Unlike [Answers.List], it doesn't copy text without escapes.
func (a Answers) Each(see func(name string, values []string) error) error {
	if a.text == "" {
		return nil
	}
	s := answerScanner{rest: a.text}
	var values []string
	s.expect("{")
	for first := true; s.err == nil && !s.cut("}"); first = false {
		if !first {
			s.expect(",")
		}
		name := s.text()
		s.expect(`:{"value":[`)
		values = values[:0]
		for s.err == nil && !s.cut("]") {
			if len(values) > 0 {
				s.expect(",")
			}
			values = append(values, s.text())
		}
		s.expect("}")
		if s.err != nil {
			return s.err
		}
		if err := see(name, values); err != nil {
			return err
		}
	}
	if s.err == nil && s.rest != "" {
		s.err = errAnswersText
	}
	return s.err
}

// An answerScanner reads what NewAnswers has written.
type answerScanner struct {
	rest string
	err  error
}

// cut consumes a text, and reports whether it came next.
func (s *answerScanner) cut(text string) (ok bool) {
	s.rest, ok = strings.CutPrefix(s.rest, text)
	return ok
}

func (s *answerScanner) expect(text string) {
	if s.err == nil && !s.cut(text) {
		s.err = errAnswersText
	}
}

// text consumes a string.
func (s *answerScanner) text() string {
	s.expect(`"`)
	escaped := false
	for i := 0; s.err == nil && i < len(s.rest) && s.rest[i] >= ' '; i++ { // JSON has no raw control characters
		switch s.rest[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			if !escaped {
				return text
			}
			b, err := jsontext.AppendUnquote(nil, `"`+text+`"`)
			s.err = err
			return string(b)
		}
	}
	s.err = cmp.Or(s.err, errAnswersText)
	return ""
}

// maxAnswers limits the number of a response's answers; [MaxAnswersSize] limits their size.
const maxAnswers = 1_000

// badName reports whether no module can have that name.
func badName(name string) bool {
	return name == "" || CheckText(name) != nil || utf8.RuneCountInString(name) > maxModuleName
}

// checkSize notes answers that are larger than [MaxAnswersSize].
func (e *ValidationError) checkSize(a Answers) {
	if len(a.text) > MaxAnswersSize {
		e.add("/responses", "too_large", "must have at most %d bytes in all, as stored JSON", MaxAnswersSize)
	}
}

// checkNames notes what is wrong with answers whatever the campaign.
func (e *ValidationError) checkNames(answers []Answer) {
	if len(answers) > maxAnswers {
		e.add("/responses", "too_many", "must have at most %d members", maxAnswers)
		return
	}
	seen := make(map[string]bool, len(answers))
	for _, a := range answers {
		if !e.checkName("/responses", "a module name", a.Name, maxModuleName) {
			continue
		}
		if seen[a.Name] {
			e.add("/responses/"+pointerEscape(a.Name), "duplicate", "is answered twice")
		}
		seen[a.Name] = true
		for n, value := range a.Value {
			if code, detail := textFault(value); code != "" {
				e.add(fmt.Sprintf("/responses/%s/value/%d", pointerEscape(a.Name), n), code, "%s", detail)
			}
		}
	}
}

// Limits of metadata; of names and values, in characters.
const (
	maxCampaignMetadata = 100
	maxMetadata         = 50 // of a response
	maxMetaKey          = 200
	maxMetaValue        = 2_000
)

// Metadata holds names and values that programs keep with a response, as the JSON object that stores keep and clients
// receive: {"name":"value",…}, sorted. It is "" without any. Visitors neither set nor see it. Make it with [NewMetadata].
type Metadata string

// NewMetadata returns the given metadata. It doesn't check it; services do.
func NewMetadata(values map[string]string) Metadata {
	if len(values) == 0 {
		return ""
	}
	text, _ := json.Marshal(values, json.Deterministic(true)) // services refuse text that isn't UTF-8
	return Metadata(text)
}

// JSON returns the metadata as a JSON object.
func (m Metadata) JSON() string { return string(cmp.Or(m, "{}")) }

// Map returns the metadata by name. The caller owns the result, which is never nil.
func (m Metadata) Map() map[string]string {
	values := make(map[string]string)
	if m != "" {
		_ = json.Unmarshal([]byte(m), &values) // it is what NewMetadata wrote
	}
	return values
}

// AllValues calls see as [Answers.Each] does, and with the metadata, whose names get the prefix "metadata.".
func (r *Response) AllValues(see func(name string, values []string) error) error {
	err := r.Answers.Each(see)
	for name, value := range r.Metadata.Map() {
		err = cmp.Or(err, see("metadata."+name, []string{value}))
	}
	return err
}

// mergeMetadata applies the metadata of a patch to r (RFC 7396) and returns JSON Pointers to what changed, sorted.
func mergeMetadata(v *ValidationError, r *Response, patch map[string]*string) (changes []string) {
	values := r.Metadata.Map()
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		value := patch[name]
		if old, had := values[name]; value == nil && !had || value != nil && had && old == *value {
			continue
		}
		if delete(values, name); value != nil {
			values[name] = *value
		}
		changes = append(changes, "/metadata/"+pointerEscape(name))
	}
	v.checkMetadata(values, maxMetadata)
	r.Metadata = NewMetadata(values)
	return changes
}

// checkMetadata notes what is wrong with the metadata of a campaign or response that may have that many names.
func (e *ValidationError) checkMetadata(metadata map[string]string, most int) {
	if len(metadata) > most {
		e.add("/metadata", "too_many", "must have at most %d entries", most)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		if e.checkName("/metadata", "a name", k, maxMetaKey) {
			e.checkLine("/metadata/"+pointerEscape(k), metadata[k], maxMetaValue)
		}
	}
}
