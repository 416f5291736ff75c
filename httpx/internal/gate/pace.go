package gate

import (
	"io"
	"net/http"
	"time"
)

// How fast a client must send or receive a file. It may pause for Grace at a time. Altogether it may pause for
// Grace, and a second for every paceBytes transferred.
//
// Written bytes may not have reached the client: the kernels on both sides buffer up to Ahead (on Linux, 4 MiB to
// be sent and 6 MiB received). They accept more only once a good part is gone. So a download may pause longer, by the
// time that these bytes take at the lowest rate.
const (
	Grace     = 60 * time.Second
	paceBytes = 16 << 10
	Ahead     = 10 << 20
)

// A Pace extends the deadline of a transfer while it keeps up, so that a large file may take longer than the server's
// timeouts. Only time spent waiting for the client counts, not our own work.
type Pace struct {
	Set    func(time.Time)
	Grace  time.Duration
	Ahead  int64         // bytes written that may not have reached the client
	moved  int64         // bytes
	waited time.Duration // for the client
	began  time.Time     // when the wait under way began
	last   time.Time     // when the deadline was set
}

// Begin is called before a read or write.
func (p *Pace) Begin() {
	p.began = time.Now()
	if p.began.Sub(p.last) < p.Grace/240 { // at most every 250 ms, since it costs more than a small read
		return
	}
	p.last = p.began
	left := p.Grace + PaceTime(p.moved) - p.waited
	p.Set(p.began.Add(min(left, p.Grace+PaceTime(min(p.moved, p.Ahead)))))
}

// PaceTime returns how long a client may take for n bytes.
func PaceTime(n int64) time.Duration { return time.Duration(n/paceBytes) * time.Second }

// End is called after a read or write of n bytes.
func (p *Pace) End(n int) {
	p.waited += time.Since(p.began)
	p.moved += int64(n)
}

// A Body is the body of a request whose client may take as long as its [Pace] allows. Where deadlines can't be set, those of the server
// hold.
type Body struct {
	io.ReadCloser

	control *http.ResponseController
	pace    Pace
}

// NewBody returns the body of a request whose client may pause for grace.
func NewBody(w http.ResponseWriter, r *http.Request, grace time.Duration) *Body {
	b := &Body{ReadCloser: r.Body, control: http.NewResponseController(w)}
	b.pace = Pace{Grace: grace, Set: b.extend}
	return b
}

// extend moves the deadlines. The write deadline moves along, since the reply comes after the body. Without a body there is nothing to
// wait for, and net/http watches the connection.
func (b *Body) extend(deadline time.Time) {
	if b.ReadCloser == http.NoBody {
		return
	}
	_ = b.control.SetReadDeadline(deadline)
	_ = b.control.SetWriteDeadline(deadline.Add(b.pace.Grace))
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.pace.Begin()
	n, err := b.ReadCloser.Read(p)
	b.pace.End(n)
	return n, err
}

// Finish leaves time for the reply, however long the body took.
func (b *Body) Finish() {
	if !b.pace.last.IsZero() {
		_ = b.control.SetWriteDeadline(time.Now().Add(b.pace.Grace))
	}
}
