package blobtest

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// An odd reader returns pieces of odd sizes, sometimes empty ones, and io.EOF with the last bytes.
type odd struct {
	rest   []byte
	random *rand.Rand
}

func newOdd(content []byte) *odd {
	return &odd{content, rand.New(rand.NewPCG(1, uint64(len(content))))}
}

// Read implements io.Reader.
func (o *odd) Read(p []byte) (int, error) {
	if len(p) == 0 || o.random.IntN(8) == 0 {
		return 0, nil
	}
	n := min(len(p), len(o.rest), 1+o.random.IntN(100_003))
	copy(p, o.rest[:n])
	o.rest = o.rest[n:]
	// A reader may overwrite the part of p that it doesn't fill.
	clear(p[n:min(len(p), n+1000)])
	if len(o.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// A script is a reader that calls functions at positions in its content.
type script struct {
	rest  []byte
	read  int
	steps []step
	end   error // the error after the content; nil means io.EOF
	joint bool  // end is returned together with the last bytes
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

// wantUnread is called when Put has returned. It waits for a goroutine that may still read.
func (r *watched) wantUnread(w *world) {
	w.Helper()
	r.over.Store(true)
	time.Sleep(20 * time.Millisecond)
	if n := r.late.Load(); n > 0 {
		w.Errorf("the reader was read %d times after Put returned", n)
	}
}
