package formsvc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"mime"
	"path"
	"regexp"
	"strings"
)

// A Bound is the least or the greatest value of a [Module], as an answer writes it; "" is none. In JSON it is a number, or a
// string for a date or time.
type Bound string

// MarshalJSON implements json.Marshaler.
func (b Bound) MarshalJSON() ([]byte, error) {
	if jsonNumber.MatchString(string(b)) {
		return []byte(b), nil
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bound) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(b))
	}
	*b = Bound(text)
	return nil
}

// less reports whether an answer is less than another. Both are valid numbers, or both days or times.
func (m *Module) less(a, b string) bool {
	if m.Type.Numeric() {
		return decimal(a).Cmp(decimal(b)) < 0
	}
	return a < b
}

// decimal returns the exact value of a number that matches jsonNumber.
func decimal(s string) *big.Rat {
	n, _ := new(big.Rat).SetString(s)
	return n
}

// checkRange returns why a number, day or time is not in the module's range, or "".
func (m *Module) checkRange(value string) (code, detail string) {
	switch {
	case m.Integer && !decimal(value).IsInt():
		return "not_integer", "must be a whole number"
	case m.Min != "" && m.less(value, string(m.Min)), m.Max != "" && m.less(string(m.Max), value):
		return "out_of_range", "must be " + m.rangeText()
	}
	return "", ""
}

// bounds returns the least and the greatest value, with the defaults of a rating and a scale.
func (m *Module) bounds() (least, greatest Bound) {
	switch m.Type {
	case RatingModule:
		return cmp.Or(m.Min, "1"), cmp.Or(m.Max, "5")
	case ScaleModule:
		return cmp.Or(m.Min, "0"), cmp.Or(m.Max, "10")
	}
	return m.Min, m.Max
}

// rangeText describes the module's range.
func (m *Module) rangeText() string {
	switch {
	case m.Max == "":
		return "at least " + string(m.Min)
	case m.Min == "":
		return "at most " + string(m.Max)
	}
	return "between " + string(m.Min) + " and " + string(m.Max)
}

// acceptForm is a media type, a range of them, or an extension.
var acceptForm = regexp.MustCompile(`^(\.[A-Za-z0-9][A-Za-z0-9._+-]{0,30}|[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,60}/(\*|[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,90}))$`)

// checkBounds notes the faults of the members that limit numbers, days, times and files, and sets the defaults of a rating and a scale.
func (e *ValidationError) checkBounds(pointer string, m *Module) {
	valid := true
	m.Min, m.Max = m.bounds()
	for i, label := range []string{m.MinLabel, m.MaxLabel} {
		member := pointer + []string{"/minLabel", "/maxLabel"}[i]
		e.checkLine(member, label, maxPlaceholder)
		e.misplaced(label != "" && !m.Type.Steps(), member, "applies to rating and scale only")
	}
	for i, b := range []Bound{m.Min, m.Max} {
		member := pointer + []string{"/min", "/max"}[i]
		switch _, detail := (&Module{Type: m.Type}).Check(string(b)); {
		case b == "":
		case !m.Type.Ranged():
			e.add(member, "not_applicable", "applies to number, date, time, rating and scale only")
			valid = false
		case detail != "":
			e.add(member, "invalid_value", "%s", detail)
			valid = false
		}
	}
	if valid && m.Min != "" && m.Max != "" && m.less(string(m.Max), string(m.Min)) {
		e.add(pointer+"/max", "out_of_range", "must not be less than min")
	} else if list := m.Choices(); valid && m.Type.Steps() && list[len(list)-1] != string(m.Max) {
		e.add(pointer+"/max", "out_of_range", "must be at most %d above min", maxSteps)
	}
	e.misplaced(m.Integer && m.Type != NumberModule, pointer+"/integer", "applies to number only")
	if len(m.Accept) > 0 && m.Type != FileModule {
		e.add(pointer+"/accept", "not_applicable", "applies to file only")
	} else if len(m.Accept) > maxAccept {
		e.add(pointer+"/accept", "too_many", "must have at most %d types", maxAccept)
	} else {
		for i, t := range m.Accept {
			if !acceptForm.MatchString(t) {
				e.add(fmt.Sprintf("%s/accept/%d", pointer, i), "invalid_value", "must be a media type such as image/png or image/*, or an extension such as .pdf")
			}
		}
	}
	if len(m.Accept) == 0 {
		m.Accept = nil // an empty list would be stored
	}
}

// Accepts reports whether the module takes a file of that name and media type, by its declared type or that of its extension
// ([Module].Accept).
func (m *Module) Accepts(name, contentType string) bool {
	name = strings.ToLower(name)
	for _, t := range m.Accept {
		if t = strings.ToLower(t); t[0] == '.' {
			if strings.HasSuffix(name, t) {
				return true
			}
			continue
		}
		for _, declared := range []string{contentType, mime.TypeByExtension(path.Ext(name))} {
			declared, _, _ = strings.Cut(strings.ToLower(declared), ";")
			declared = strings.TrimSpace(declared)
			if family, all := strings.CutSuffix(t, "*"); declared == t || all && strings.HasPrefix(declared, family) {
				return true
			}
		}
	}
	return len(m.Accept) == 0
}
