package main

import (
	"io"
	"testing"
)

// end stops a meter, even if its command ended before it began to run, and may be called again.
func TestMeterEndsAtOnce(t *testing.T) {
	t.Parallel()
	for range 1000 {
		m := newMeter(io.Discard, "erase", inPieces("responses"))
		m.end()
		m.end()
	}
}
