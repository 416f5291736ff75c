package main

import (
	"bytes"
	"testing"
	"time"
)

// Progress is a line at most every five seconds, with the total if it is known.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out}
	p.show("reading", 999, 12_345_678, inBytes)
	p.show("reading", 5_000_000, 12_345_678, inBytes)
	p.next = time.Time{}
	p.show("erasing", 7, 0, inPieces("records"))
	if got, want := out.String(), "reading: 999 B of 12 MB\nerasing: 7 records\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	(*progress)(nil).show("reading", 1, 2, inBytes)
}
