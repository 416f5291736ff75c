package loadgen

import (
	"bytes"
	"fmt"
	"strconv"
)

// chunked is the length of a body that comes in chunks, as net/http sends what is
// longer than a few kilobytes when nobody says how long.
const chunked = -1

// chunks reads such a body, which must have no trailer, and returns it or drops it.
func (a *Answers) chunks(keep bool) (body []byte, err error) {
	for {
		line, err := a.line()
		if err != nil {
			return nil, err
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("an answer with a chunk of %.20q", line)
		}
		part, err := a.Body(int(size), keep)
		if err != nil {
			return nil, err
		}
		body = append(body, part...)
		if line, err = a.line(); err != nil {
			return nil, err
		}
		if len(line) > 0 {
			return nil, fmt.Errorf("an answer with %.20q after a chunk of %d", line, size)
		}
		if size == 0 {
			return body, nil
		}
	}
}

// line reads up to the end of a line.
func (a *Answers) line() ([]byte, error) {
	for {
		if n := bytes.Index(a.buf[a.start:a.end], []byte("\r\n")); n >= 0 {
			line := a.buf[a.start : a.start+n]
			a.start += n + 2
			return line, nil
		}
		if err := a.fill(); err != nil {
			return nil, err
		}
	}
}
