package delivery

import "time"

// To keep a fast endpoint busy while the queue commits, more is claimed for it
// than its window has room for. What is claimed ahead waits in memory and is sent
// when a request ends; what cannot be sent soon goes back to the queue.
//
// It takes no slot of a lane while it waits, so it keeps nobody from sending.
// When the lane is short of room, nothing more is claimed ahead.

// aheadTime is how far ahead is claimed: what an endpoint takes that long for, as
// it has answered lately. So nobody else could have sent it much earlier, and
// what changes about the endpoint meanwhile counts soon.
const aheadTime = 50 * time.Millisecond

// learn takes note of how long a success took.
func (h *health) learn(took time.Duration) {
	took = max(took, time.Microsecond)
	if h.pace == 0 {
		h.pace = took
		return
	}
	h.pace += (took - h.pace) / 8
}

// isAhead reports whether the endpoint may have claims ahead.
func (h *health) isAhead() bool { return h.proven && h.pace > 0 && h.lane() == fast }

// isLow reports whether it is time to claim ahead again: half of it is gone.
// Claims for each request that ends would cost more than the requests.
func (h *health) isLow() bool { return h.goal > 0 && h.ahead <= h.goal/2 }

// planAhead reserves what is to be claimed ahead, in equal parts for all that
// have more due, and returns the items that have only that.
func (t *traffic) planAhead(a *agenda, planned []*item) []*item {
	if t.lacked[fastSlots] >= 0 || t.lacked[allBytes] >= 0 {
		return planned
	}
	var eager []*item
	for _, g := range a.groups {
		for _, it := range g.all {
			if h := t.endpoints[it.ID]; h != nil && !it.empty && h.isAhead() {
				eager = append(eager, it)
			}
		}
	}
	for _, it := range eager {
		h := t.endpoints[it.ID]
		h.goal = int(min(t.caps[aheadSlots]/int64(len(eager)), int64(h.window)*int64(aheadTime)/int64(h.pace)))
		if !h.isLow() {
			continue
		}
		n := int(min(int64(h.goal-h.ahead), t.free(aheadSlots), t.weighable(h, it.planned)))
		if n <= 0 {
			h.goal = 0
			continue
		}
		if it.planned == 0 {
			planned = append(planned, it)
		}
		it.ahead = n
		h.ahead += n
		t.used[aheadSlots] += int64(n)
	}
	return planned
}

// weighable returns how many payloads like the last ones of the endpoint may be
// claimed ahead beside those that are planned.
func (t *traffic) weighable(h *health, planned int) int64 {
	size := h.size
	if size == 0 {
		size = largestPayload
	}
	return min(t.endpointBytes-h.bytes-int64(planned)*size, t.caps[allBytes]/2-t.used[allBytes]) / size
}

// claimedAhead returns the slot of a claim that was planned ahead. If the payload
// is too large to wait, it has to go back.
func (t *traffic) claimedAhead(it *item, c *Claim) *slot {
	it.ahead--
	h := t.endpoints[it.ID]
	s := &slot{endpoint: h, account: t.bookAccount(it.Account), size: max(0, int64(c.Size)), ahead: true, proven: true}
	h.weigh(s.size)
	if h.bytes+s.size > t.endpointBytes || t.used[allBytes]+s.size > t.caps[allBytes] {
		s.refused, s.size = true, 0
		return s
	}
	h.bytes += s.size
	t.used[allBytes] += s.size
	return s
}

// next begins what was claimed ahead for an endpoint, as far as there is room,
// and returns it, and what has to go back: everything, once the endpoint has lost
// its privilege, or when nothing else of it is left to wait for.
func (t *traffic) next(h *health) (begun, back []*slot) {
	if t.closed || !h.isAhead() {
		return nil, h.drop()
	}
	for len(h.waiting) > 0 && h.inWindow(&t.limits) && t.free(fastSlots) > int64(h.held[fast]) {
		s := h.waiting[0]
		h.waiting = h.waiting[1:]
		t.begin(s)
		begun = append(begun, s)
	}
	if h.running == 0 && h.recording == 0 {
		back = h.drop()
	}
	return begun, back
}

// begin gives a slot of the fast lane to what was claimed ahead.
func (t *traffic) begin(s *slot) {
	s.ahead = false
	s.endpoint.ahead--
	t.used[aheadSlots]--
	s.endpoint.running++
	t.add(fast, true, 1, 0)
	t.count(s, 1)
}

// drop returns what waits and forgets it.
func (h *health) drop() []*slot {
	waiting := h.waiting
	h.waiting = nil
	return waiting
}

// close returns all that waits, and sees to it that nothing waits any more.
func (t *traffic) close() (back []*slot) {
	t.closed = true
	for _, h := range t.endpoints {
		back = append(back, h.drop()...)
	}
	return back
}

// wait puts what was claimed ahead in line to be begun.
func (t *traffic) wait(jobs []*job) {
	for _, j := range jobs {
		h := j.slot.endpoint
		h.waiting = append(h.waiting, j.slot)
	}
}

// line puts jobs that were claimed ahead in line, and goes on with their
// endpoints. They count as requests in flight until they have gone back.
func (r *run) line(jobs []*job) {
	r.sends.Add(len(jobs))
	for len(jobs) > 0 {
		n := 1
		for n < len(jobs) && jobs[n].slot.endpoint == jobs[0].slot.endpoint {
			n++
		}
		r.proceed(r.slots.line(jobs[:n]))
		jobs = jobs[n:]
	}
}

// proceed sends what begins and gives back what goes back.
func (r *run) proceed(begun, back []*slot) {
	r.giveBack(back)
	for _, s := range begun {
		go r.deliver(s.job)
	}
}

func (r *run) giveBack(slots []*slot) {
	for _, s := range slots {
		r.release(s.job)
		r.sends.Done()
	}
}

// closeAhead gives back what was claimed ahead, now and from now on.
func (r *run) closeAhead() { r.giveBack(r.slots.close()) }
