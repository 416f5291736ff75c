package main

import "time"

// pace has requests come due until the end, and waits for no answer.
func (l *load) pace() {
	defer close(l.due)
	first := time.Now()
	for i := 0; !l.failed.Load(); i++ {
		due := first.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
		if !due.Before(l.end) || i == cap(l.due) {
			return
		}
		sleepUntil(due)
		l.due <- due
	}
}

// turn waits until the next request may be sent, and returns since when it should
// have been.
func (l *load) turn() (start time.Time, ok bool) {
	if l.due != nil {
		start, ok = <-l.due
		return start, ok
	}
	start = time.Now()
	return start, start.Before(l.end)
}

// counts reports whether a request is one of those between begin and end. Those of
// an open loop are what was due then, or slow answers would not count.
func (l *load) counts(start, end time.Time) bool {
	if l.due != nil {
		return !start.Before(l.begin)
	}
	return !end.Before(l.begin) && end.Before(l.end)
}
