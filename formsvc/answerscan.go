package formsvc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var errAnswersText = errors.New("formsvc: stored answers: not as they were written")

// Each calls see with every answer in order, and returns the first error. see must not keep values
// after it returns. Each is a cheaper [Answers.List] for callers that read many responses: it
// doesn't copy text without escapes.
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

// jsonSpace occurs if a store keeps the text in a JSON type of its database.
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

// next skips white space and returns the next byte, or 0 at the end.
func (s *answerScanner) next() byte {
	for s.rest != "" {
		if c := s.rest[0]; strings.IndexByte(jsonSpace, c) < 0 {
			return c
		}
		s.rest = s.rest[1:]
	}
	return 0
}

// ends reports whether c is next, and consumes it if so.
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

// text consumes a string.
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
