package formsvc

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

// An AnswerFilter is a condition on the answer to a question. One value of the answer must meet it; an answer that can't be compared
// doesn't, and neither does none.
type AnswerFilter struct {
	// Any holds values of which one is needed: of choices and yes/no questions exactly, of numbers and dates one that is equal. Of
	// other questions it is a part of the answer, whatever its case and accents. Defaults to all.
	Any []string
	// From and To are the least and the greatest number or day. They default to none.
	From, To string
}

// ranged reports whether the answers are numbers or days.
func (m *Module) ranged() bool { return m.Type == NumberModule || m.Type == DateModule }

// comparable reports whether a value is a number or a day, in whatever range.
func (m *Module) comparable(value string) bool {
	code, _ := (&Module{Type: m.Type}).Check(value)
	return code == ""
}

// Where adds a condition on the answer to a question, in place of an earlier one. It fails with a *[ValidationError] whose pointers are
// /answer, /answerFrom and /answerTo if the question can't be compared with the values, or if no answer is in the range. Answers to a
// question that the campaign doesn't have are compared as the range is, numbers or days.
func (s *Search) Where(name string, f AnswerFilter) error {
	if s.where == nil {
		s.where = make(map[string]func(string) bool)
	}
	m := s.modules[name]
	if m == nil {
		m = f.guessed()
	}
	if m == nil {
		s.where[name] = func(string) bool { return false }
		return nil
	}
	var v ValidationError
	check := func(pointer, value string) {
		switch code, detail := (&Module{Type: m.Type}).Check(value); {
		case m.Type == FileModule:
			v.add(pointer, "not_applicable", "doesn't apply to files")
		case !m.ranged() && pointer != "/answer":
			v.add(pointer, "not_applicable", "applies to number and date only")
		case m.ranged() && code != "":
			v.add(pointer, code, "%s", detail)
		}
	}
	for _, value := range f.Any {
		check("/answer", value)
	}
	if f.From != "" {
		check("/answerFrom", f.From)
	}
	if f.To != "" {
		check("/answerTo", f.To)
	}
	if len(v.Fields) == 0 && f.From != "" && f.To != "" && m.less(f.To, f.From) {
		v.add("/answerTo", "out_of_range", "must not be less than the least value")
	}
	s.where[name] = m.meets(f)
	return v.err()
}

// guessed returns a module that has both ends of the range, or nil.
func (f *AnswerFilter) guessed() *Module {
	for _, t := range []ModuleType{NumberModule, DateModule} {
		m := &Module{Type: t}
		if f.From+f.To != "" && m.comparable(cmp.Or(f.From, f.To)) && m.comparable(cmp.Or(f.To, f.From)) {
			return m
		}
	}
	if f.From+f.To != "" {
		return nil
	}
	return &Module{}
}

// meets returns whether a value of an answer meets the condition.
func (m *Module) meets(f AnswerFilter) func(value string) bool {
	exact := m.Type == ChoiceModule || m.Type == BooleanModule
	wanted := slices.Clone(f.Any)
	for i := range wanted {
		if !exact && !m.ranged() {
			wanted[i] = plainText(wanted[i])
		}
	}
	return func(value string) bool {
		switch {
		case exact:
			return len(wanted) == 0 || slices.Contains(wanted, value)
		case !m.ranged():
			value = plainText(value)
			return len(wanted) == 0 || slices.ContainsFunc(wanted, func(part string) bool { return strings.Contains(value, part) })
		case !m.comparable(value), f.From != "" && m.less(value, f.From), f.To != "" && m.less(f.To, value):
			return false
		}
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(x string) bool { return !m.less(x, value) && !m.less(value, x) })
	}
}

// meets reports whether the response meets all conditions.
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

// A SortKey puts values into the order that people expect; see [Module.SortKey].
type SortKey struct {
	none   bool
	number *big.Rat // nil: compared as a text
	text   string
}

// maxSortText is how much of a text counts in its order, in bytes.
const maxSortText = 200

// SortKey returns the key of an answer: numbers by their value, choices in the order of the form, and other texts, those of a nil
// module too, whatever their case and accents.
func (m *Module) SortKey(values ...string) SortKey {
	text := m.ShownValues(values)
	k := SortKey{none: text == "", text: plainText(text[:min(len(text), maxSortText)])}
	switch {
	case k.none || m == nil:
	case m.Type == NumberModule && m.comparable(values[0]):
		k.number = decimal(values[0])
	case m.Type == ChoiceModule:
		if i := slices.Index(m.Options, values[0]); i >= 0 {
			k.number = big.NewRat(int64(i), 1)
		}
	}
	return k
}

// Compare returns a negative number if k comes before other, or a positive one if after. An empty value is last in either order, and
// one that is no number after the numbers.
func (k SortKey) Compare(other SortKey, descending bool) int {
	c := strings.Compare(k.text, other.text)
	switch {
	case k.none != other.none:
		return map[bool]int{true: 1, false: -1}[k.none]
	case k.number != nil && other.number != nil:
		c = cmp.Or(k.number.Cmp(other.number), c)
	case (k.number == nil) != (other.number == nil):
		c = map[bool]int{true: 1, false: -1}[k.number == nil]
	}
	if descending {
		return -c
	}
	return c
}
