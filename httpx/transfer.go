package httpx

import (
	"net/http"
	"time"
)

// How fast a client must send or receive a file. It may pause for paceGrace at a time. Altogether it may pause for
// paceGrace, and a second for every paceBytes transferred.
//
// Written bytes may not have reached the client: the kernels on both sides buffer up to paceAhead (on Linux, 4 MiB to
// be sent and 6 MiB received). They accept more only once a good part is gone. So a download may pause longer, by the
// time that these bytes take at the lowest rate.
const (
	paceGrace = 60 * time.Second
	paceBytes = 16 << 10
	paceAhead = 10 << 20
)

// A pace extends the deadline of a transfer while it keeps up, so that a large file may take longer than the server's
// timeouts. Only time spent waiting for the client counts, not our own work.
type pace struct {
	set    func(time.Time)
	grace  time.Duration
	ahead  int64         // bytes written that may not have reached the client
	moved  int64         // bytes
	waited time.Duration // for the client
	began  time.Time     // when the wait under way began
	last   time.Time     // when the deadline was set
}

// begin is called before a read or write.
func (p *pace) begin() {
	p.began = time.Now()
	if p.began.Sub(p.last) < p.grace/240 { // at most every 250 ms, since it costs more than a small read
		return
	}
	p.last = p.began
	left := p.grace + paceTime(p.moved) - p.waited
	p.set(p.began.Add(min(left, p.grace+paceTime(min(p.moved, p.ahead)))))
}

// paceTime returns how long a client may take for n bytes.
func paceTime(n int64) time.Duration { return time.Duration(n/paceBytes) * time.Second }

// end is called after a read or write of n bytes.
func (p *pace) end(n int) {
	p.waited += time.Since(p.began)
	p.moved += int64(n)
}

// exportsAtMost is how many exports take all slots of transfers: each holds records of up to 4 MiB, and works all the time.
const exportsAtMost = 32

// exportTurn is how long an export may wait for its turn. Each lasts for some milliseconds.
const exportTurn = time.Minute

// transfer takes slots for a file transfer or an export; done frees them. The caller releases the call's own slot once it waits for the
// client.
func (h *Handler) transfer(c *call, weight int64) (done func(), err error) {
	account := string(c.who.AccountID)
	if !h.transfers.Take(account, weight) {
		return nil, &problem{
			status: http.StatusServiceUnavailable, code: "too_many_transfers",
			detail: "The maximum number of transfers is in progress. Nothing was changed; retry.",
		}
	}
	return func() { h.transfers.Give(account, weight) }, nil
}
