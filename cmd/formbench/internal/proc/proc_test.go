package proc

import (
	"math"
	"os"
	"testing"
	"time"
)

// TestTimes checks that CPU time counts for the process that uses it.
func TestTimes(t *testing.T) {
	t.Parallel()
	before, err := ReadTimes(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for after.Self-before.Self < 50*time.Millisecond { // uses CPU time meanwhile
		if after, err = ReadTimes(os.Getpid(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if after.Each[0] < after.Self-50*time.Millisecond || after.Each[1] != 0 || after.Machine < after.Self || !after.At.After(before.At) {
		t.Errorf("got %+v after %+v", after, before)
	}
	at := time.Now()
	a := Times{At: at, Each: []time.Duration{1e9, 2e9}, Self: 3e9, Machine: 10e9}
	b := Times{At: at.Add(4 * time.Second), Each: []time.Duration{2e9, 4e9}, Self: 6e9, Machine: 20e9}
	elapsed, each, self, other := b.Since(&a)
	if elapsed != 4 || each[0] != 0.25 || each[1] != 0.5 || self != 0.75 || math.Abs(other-1) > 1e-9 {
		t.Errorf("got %v, %v, %v, %v", elapsed, each, self, other)
	}
	now, peak, err := MemoryMB(os.Getpid())
	if err != nil || now < 1 || peak < now {
		t.Errorf("memory is %v of %v, %v", now, peak, err)
	}
	if _, err := ReadTimes(1 << 30); err == nil {
		t.Error("a process that there isn't has used something")
	}
}
