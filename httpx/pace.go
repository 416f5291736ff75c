package httpx

import "time"

// How fast a client must be that sends or takes a file. It may keep us waiting
// for paceGrace at a time, and for paceGrace and a second for every paceBytes
// moved altogether.
//
// What we have written is not yet with the client: the systems on both sides hold
// up to paceAhead of it (Linux: 4 MiB to be sent and 6 MiB received), and take
// nothing more until a good part of that is gone. So the waits of a download may
// be longer by what that takes at the least rate.
const (
	paceGrace = 60 * time.Second
	paceBytes = 16 << 10
	paceAhead = 10 << 20
)

// A pace moves the deadline of a transfer while it goes on well, so that a large
// file may take longer than a server allows for a request. Only the time that
// the client takes counts, not what we spend on its bytes.
type pace struct {
	set    func(time.Time)
	grace  time.Duration
	ahead  int64         // bytes that may have been moved without being with the client
	moved  int64         // bytes
	waited time.Duration // for the client
	began  time.Time     // when the wait under way began
	last   time.Time     // when the deadline was set
}

// begin is called before bytes are moved.
func (p *pace) begin() {
	p.began = time.Now()
	if p.began.Sub(p.last) < p.grace/240 { // at most every 250 ms, since it costs more than a small read
		return
	}
	p.last = p.began
	left := p.grace + paceTime(p.moved) - p.waited
	p.set(p.began.Add(min(left, p.grace+paceTime(min(p.moved, p.ahead)))))
}

// paceTime is how long a client may take for so many bytes.
func paceTime(n int64) time.Duration { return time.Duration(n/paceBytes) * time.Second }

// end is called after n bytes were moved.
func (p *pace) end(n int) {
	p.waited += time.Since(p.began)
	p.moved += int64(n)
}
