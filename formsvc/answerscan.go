package formsvc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var errAnswersText = errors.New("formsvc: stored answers: not as they were written")

// Each calls see with every answer in their order, and returns the first error.
// The values are see's until it returns. It is what [Answers.List] is, for callers
// that look at many responses: text without escapes is not copied.
func (a Answers) Each(see func(name string, values []string) error) error {
	if a.text == "" {
		return nil
	}
	s := answerScanner{rest: a.text}
	var values []string
	s.expect('{')
	for first := true; s.err == nil && !s.ends('}'); first = false {
		if !first {
			s.expect(',')
		}
		name := s.text()
		s.expect(':')
		s.expect('{')
		if s.text() != "value" {
			s.fail()
		}
		s.expect(':')
		s.expect('[')
		values = values[:0]
		for s.err == nil && !s.ends(']') {
			if len(values) > 0 {
				s.expect(',')
			}
			values = append(values, s.text())
		}
		s.expect('}')
		if s.err != nil {
			break
		}
		if err := see(name, values); err != nil {
			return err
		}
	}
	if s.err == nil && strings.TrimLeft(s.rest, jsonSpace) != "" {
		s.fail()
	}
	return s.err
}

// jsonSpace is there where a store keeps the text as its database's own JSON.
const jsonSpace = " \t\r\n"

// An answerScanner reads the text of answers from its beginning.
type answerScanner struct {
	rest string
	err  error
}

func (s *answerScanner) fail() {
	if s.err == nil {
		s.err = errAnswersText
	}
}

// next returns what comes after white space, 0 at the end.
func (s *answerScanner) next() byte {
	for s.rest != "" {
		if c := s.rest[0]; strings.IndexByte(jsonSpace, c) < 0 {
			return c
		}
		s.rest = s.rest[1:]
	}
	return 0
}

// ends reports whether c is next, and takes it then.
func (s *answerScanner) ends(c byte) bool {
	if s.next() != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *answerScanner) expect(c byte) {
	if s.err == nil && !s.ends(c) {
		s.fail()
	}
}

// text takes a string.
func (s *answerScanner) text() string {
	if s.err != nil || s.next() != '"' {
		s.fail()
		return ""
	}
	escaped := false
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			literal := s.rest[:i+1]
			s.rest = s.rest[i+1:]
			if !escaped {
				return literal[1:i]
			}
			var text string
			if err := json.Unmarshal([]byte(literal), &text); err != nil {
				s.err = fmt.Errorf("%w: %w", errAnswersText, err)
			}
			return text
		}
	}
	s.fail()
	return ""
}
