package schedule

import (
	"cmp"
	"slices"
	"strings"
)

// Queues are the accounts and endpoints that have deliveries due, for one scheduler.
type Queues struct {
	accounts  []*accountQueue
	byAccount map[string]*accountQueue
	endpoints map[string]*endpointQueue
	planned   []*endpointQueue // endpoints with a share in the plan, in order
}

// An accountQueue has the endpoints of one account with due deliveries.
type accountQueue struct {
	position
	endpoints []*endpointQueue
	open      []*endpointQueue // endpoints that may get a share in the current plan, in order
}

// An endpointQueue represents the due deliveries of one endpoint.
type endpointQueue struct {
	position
	account  string
	planned  int // deliveries that the plan starts
	prefetch int // deliveries that it prefetches in addition
	bulkhead Bulkhead
	probe    bool
	drained  bool // it had less than the plan had for it
}

// A position is a queue's position in the round: the queue with the fewest slots is next, and of
// equals the one whose last turn is longest ago.
type position struct {
	id   string
	held int // slots of the bulkhead
	turn uint64
}

func (p *position) get() *position { return p }

func compare[Q interface{ get() *position }](x, y Q) int {
	a, b := x.get(), y.get()
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.turn, b.turn), strings.Compare(a.id, b.id))
}

// requeue moves q to its new position after it was served.
func requeue[Q interface{ get() *position }](list []Q, q Q, turn uint64) []Q {
	p := q.get()
	p.held, p.turn = p.held+1, turn
	i, _ := slices.BinarySearchFunc(list, q, compare[Q])
	return slices.Insert(list, i, q)
}

// NewQueues returns queues with room for n endpoints.
func NewQueues(n int) *Queues {
	return &Queues{byAccount: make(map[string]*accountQueue), endpoints: make(map[string]*endpointQueue, n)}
}

// Add adds an endpoint with due deliveries.
func (q *Queues) Add(endpoint, account string) {
	a := q.byAccount[account]
	if a == nil {
		a = &accountQueue{position: position{id: account}}
		q.byAccount[account] = a
		q.accounts = append(q.accounts, a)
	}
	e := &endpointQueue{position: position{id: endpoint}, account: account}
	q.endpoints[endpoint] = e
	a.endpoints = append(a.endpoints, e)
}

// planBulkhead distributes the room of one bulkhead.
func (s *Scheduler) planBulkhead(q *Queues, in Bulkhead) {
	round := make([]*accountQueue, 0, len(q.accounts))
	for _, a := range q.accounts {
		if s.open(a, in) {
			round = append(round, a)
		}
	}
	slices.SortFunc(round, compare)
	for len(round) > 0 {
		a := round[0]
		round = round[1:]
		e := s.serve(a)
		if e == nil {
			continue
		}
		if e.planned == 1 {
			q.planned = append(q.planned, e)
		}
		round = requeue(round, a, s.turn)
	}
}

// open prepares the queues of an account for a plan and reports whether it takes
// part.
func (s *Scheduler) open(a *accountQueue, in Bulkhead) bool {
	a.open = a.open[:0]
	for _, q := range a.endpoints {
		if q.drained || q.planned > 0 {
			continue
		}
		e := s.peek(q.id)
		if q.bulkhead = e.bulkhead(); q.bulkhead == in {
			q.probe, q.held, q.turn = !e.closed, e.held[in], e.turn
			a.open = append(a.open, q)
		}
	}
	slices.SortFunc(a.open, compare)
	a.held, a.turn = 0, 0
	if known := s.accounts[a.id]; known != nil {
		a.held, a.turn = known.held[in], known.turn[in]
	}
	return len(a.open) > 0
}

// serve reserves room for one delivery of the account and returns its queue, or nil if there is no
// room.
func (s *Scheduler) serve(a *accountQueue) *endpointQueue {
	for len(a.open) > 0 {
		q := a.open[0]
		a.open = a.open[1:]
		if !s.fits(q) {
			continue
		}
		s.reserve(q)
		s.turn++
		s.endpoints[q.id].turn, s.account(a.id).turn[q.bulkhead] = s.turn, s.turn
		a.open = requeue(a.open, q, s.turn)
		return q
	}
	return nil
}

// fits reports whether there is room for one more delivery of the endpoint.
func (s *Scheduler) fits(q *endpointQueue) bool {
	e := s.peek(q.id)
	// Prefetched deliveries go first.
	fits := e.prefetched == 0 && s.mayClaim(e, q.planned) && s.hasRoom(q.bulkhead, q.probe, q.held)
	e.throttled = !fits
	return fits
}

// reserve counts one delivery of the endpoint as in flight.
func (s *Scheduler) reserve(q *endpointQueue) {
	s.remember(q.id).running++
	s.add(q.bulkhead, q.probe, 1, largestPayload)
	q.planned++
}

// EndPlan frees what was planned and not claimed. claimed says that the claim succeeded: then
// endpoints that got less than their share have no more due.
func (s *Scheduler) EndPlan(q *Queues, claimed bool) {
	for _, p := range q.planned {
		if p.planned+p.prefetch == 0 {
			continue
		}
		e := s.endpoints[p.id]
		if claimed {
			p.drained, e.throttled, e.target = true, false, 0
		}
		e.running -= p.planned
		e.prefetched -= p.prefetch
		s.used[prefetchSlots] -= int64(p.prefetch)
		s.add(p.bulkhead, p.probe, -int64(p.planned), -int64(p.planned)*largestPayload)
		p.planned, p.prefetch = 0, 0
	}
	q.planned = q.planned[:0]
	s.moveWaiting()
}
