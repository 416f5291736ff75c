package main

import (
	"io"
	"testing"
)

// A meter ends when it is told to, also one whose command was over before it began to
// run, and may be told so again.
func TestMeterEndsAtOnce(t *testing.T) {
	t.Parallel()
	for range 1000 {
		m := newMeter(io.Discard, "erase", inPieces("responses"))
		m.end()
		m.end()
	}
}
