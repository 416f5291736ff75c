package loadgen

import "time"

// pace has requests come due until the end, and waits for no answer.
func (l *Load) pace() {
	defer close(l.due)
	first := time.Now()
	for i := 0; !l.failed.Load(); i++ {
		due := first.Add(time.Duration(float64(i) / l.Rate * float64(time.Second)))
		if !due.Before(l.End) || i == cap(l.due) {
			return
		}
		sleepUntil(due)
		l.due <- due
	}
}

// turn waits until the next request may be sent, and returns since when it should
// have been.
func (l *Load) turn() (start time.Time, ok bool) {
	if l.due != nil {
		start, ok = <-l.due
		return start, ok
	}
	start = time.Now()
	return start, start.Before(l.End)
}

// counts reports whether a request is one of those between begin and end. Those of
// an open loop are what was due then, or slow answers would not count.
func (l *Load) counts(start, end time.Time) bool {
	if l.due != nil {
		return !start.Before(l.Begin)
	}
	return !end.Before(l.Begin) && end.Before(l.End)
}
