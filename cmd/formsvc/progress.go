package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"
)

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// A progress prints how far a long command is, a line every five seconds. A nil progress prints nothing. It is for one
// goroutine.
type progress struct {
	out  io.Writer
	next time.Time
}

// progress returns a progress on standard error, or nil if that is not a terminal or the output is JSON.
func (s streams) progress(o output) *progress {
	f, ok := s.err.(*os.File)
	if !ok || o.JSON || !isatty.IsTerminal(f.Fd()) {
		return nil
	}
	return &progress{out: f, next: time.Now().Add(progressEvery)}
}

// show prints a line, unless it printed one just before. all is 0 if it is unknown.
func (p *progress) show(what string, done, all int64, format func(int64) string) {
	if p == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressEvery)
	text := format(done)
	if all > 0 {
		text += " of " + format(all)
	}
	_, _ = fmt.Fprintf(p.out, "%s: %s\n", what, text)
}

// inBytes formats a number of bytes for people.
func inBytes(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// inPieces returns a format for a number of things.
func inPieces(things string) func(int64) string {
	return func(n int64) string { return fmt.Sprintf("%d %s", n, things) }
}
