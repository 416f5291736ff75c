package httpx

import "time"

// How fast a client must be that sends or takes a file. It may keep us waiting
// for paceGrace at a time, and for paceGrace and a second for every paceBytes
// moved altogether.
const (
	paceGrace = 60 * time.Second
	paceBytes = 16 << 10
)

// A pace moves the deadline of a transfer while it goes on well, so that a large
// file may take longer than a server allows for a request. Only the time that
// the client takes counts, not what we spend on its bytes.
type pace struct {
	set    func(time.Time)
	grace  time.Duration
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
	left := p.grace + time.Duration(p.moved/paceBytes)*time.Second - p.waited
	p.set(p.began.Add(min(left, p.grace)))
}

// end is called after n bytes were moved.
func (p *pace) end(n int) {
	p.waited += time.Since(p.began)
	p.moved += int64(n)
}
