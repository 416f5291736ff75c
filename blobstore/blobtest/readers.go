package blobtest

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
)

// A script is a reader that calls functions at positions in its content.
type script struct {
	rest  []byte
	read  int
	steps []step
	end   error      // the error after the content; nil means io.EOF
	joint bool       // end is returned together with the last bytes
	odd   *rand.Rand // if set, pieces have random sizes, and some are empty
}

// newOdd returns a reader of random pieces, which returns io.EOF with the last bytes.
func newOdd(content []byte) *script {
	return &script{rest: content, joint: true, odd: rand.New(rand.NewPCG(1, uint64(len(content))))}
}

// A step is called when all bytes before its position were read. Steps are ordered by position.
type step struct {
	at int
	do func()
}

// Read implements io.Reader.
func (s *script) Read(p []byte) (int, error) {
	for len(s.steps) > 0 && s.steps[0].at <= s.read {
		do := s.steps[0].do
		s.steps = s.steps[1:]
		do()
	}
	n := min(len(p), len(s.rest))
	if len(s.steps) > 0 {
		n = min(n, s.steps[0].at-s.read)
	}
	if s.odd != nil {
		n = min(n, max(s.odd.IntN(110_000)-10_000, 0))
		clear(p[n:min(len(p), n+1000)]) // a reader may overwrite the part of p that it doesn't fill
	}
	copy(p, s.rest[:n])
	s.rest = s.rest[n:]
	s.read += n
	if len(s.rest) > 0 || len(s.steps) > 0 || n > 0 && !s.joint {
		return n, nil
	}
	if s.end != nil {
		return n, s.end
	}
	return n, io.EOF
}

// A watched reader detects reads after Put has returned.
type watched struct {
	io.Reader
	over atomic.Bool
	late atomic.Int64
}

// Read implements io.Reader.
func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	// A Read that began before Put returned and ends after it counts, too.
	if r.over.Load() {
		r.late.Add(1)
	}
	return n, err
}
