package formsvc

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An AnswerFilter is a condition on the answer to a question, which one of its values must meet. None meets it if it can't be compared.
type AnswerFilter struct {
	// Any holds values of which one is needed: of choices, yes/no questions and consent exactly, of ranges one that is equal. Of
	// other questions it is a part of the answer, whatever its case and accents. Defaults to all.
	Any []string
	// From and To are the least and the greatest number, day or time ([ModuleType.Ranged]). They default to none.
	From, To string
}

// Where adds a condition on the answer to a question, in place of an earlier one. It fails with a *[ValidationError] whose pointers are
// /answer, /answerFrom and /answerTo if the question can't be compared with the values, or if nothing is in the range. Answers to a
// question that the campaign doesn't have are texts, in no range.
func (s *Search) Where(name string, f AnswerFilter) error {
	m, known := s.modules[name]
	if !known {
		m = &Module{}
	}
	var v ValidationError
	for i, value := range append([]string{f.From, f.To}, f.Any...) {
		pointer := [...]string{"/answerFrom", "/answerTo", "/answer"}[min(i, 2)]
		switch code, detail := (&Module{Type: m.Type}).Check(value); {
		case value == "" || !known:
		case m.Type == FileModule || m.Type == SectionModule || i < 2 && !m.Type.Ranged():
			v.add(pointer, "not_applicable", "doesn't apply to questions of this type")
		case m.Type.Ranged() && code != "":
			v.add(pointer, code, "%s", detail)
		case i == 1 && f.From != "" && len(v.Fields) == 0 && m.less(value, f.From):
			v.add(pointer, "out_of_range", "must not be less than the least value")
		}
	}
	if err := v.err(); err != nil {
		return err
	}
	s.where[name] = m.meets(f)
	return nil
}

// meets returns a function that reports whether a value of an answer meets the condition.
func (m *Module) meets(f AnswerFilter) func(value string) bool {
	same := func(wanted, value string) bool { return strings.Contains(plainText(value), plainText(wanted)) }
	switch {
	case m.Type.Ranged():
		same = func(wanted, value string) bool { return !m.less(wanted, value) && !m.less(value, wanted) }
	case m.Type == ChoiceModule || m.Type == BooleanModule || m.Type == ConsentModule:
		same = func(wanted, value string) bool { return wanted == value }
	}
	return func(value string) bool {
		code, _ := (&Module{Type: m.Type}).Check(value)
		if m.Type.Ranged() && code != "" || !m.Type.Ranged() && f.From+f.To != "" || f.From != "" && m.less(value, f.From) || f.To != "" && m.less(f.To, value) {
			return false
		}
		return len(f.Any) == 0 || slices.ContainsFunc(f.Any, func(wanted string) bool { return same(wanted, value) })
	}
}

// meets reports whether the answers of the response meet all conditions.
func (s *Search) meets(r *Response) bool {
	if len(s.where) == 0 {
		return true
	}
	met := 0
	_ = r.Answers.Each(func(name string, values []string) error { // stored answers can be read
		if meets := s.where[name]; meets != nil && slices.ContainsFunc(values, meets) {
			met++
		}
		return nil
	})
	return met == len(s.where)
}

// SortKey returns a text that puts answers into the order which people expect: numbers by their value, choices as in the form, and other
// texts, those of a nil module too, whatever their case and accents. It is "" without a value.
func (m *Module) SortKey(values ...string) string {
	text := m.ShownValues(values)
	switch {
	case m == nil || text == "":
	case m.Type.Numeric() && ValidNumber(values[0]):
		n, _ := strconv.ParseFloat(values[0], 64) // infinite if it is too large
		bits := math.Float64bits(n)
		if bits |= 1 << 63; n < 0 {
			bits = ^bits
		}
		return fmt.Sprintf("\x00%016x", bits)
	case m.Type == ChoiceModule && slices.Contains(m.Options, values[0]):
		return fmt.Sprintf("\x00%04d", slices.Index(m.Options, values[0]))
	}
	return plainText(text)
}
