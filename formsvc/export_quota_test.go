package formsvc

// Waiting returns the number of requests that wait for the store's reply.
func (q Quotas) Waiting() int {
	l := q.s.quota
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, b := range l.balances {
		n += len(b.waiting)
	}
	return n
}

// Held returns the number of subjects with a balance, and of the requests that they hold.
func (q Quotas) Held() (subjects, requests int) {
	l := q.s.quota
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.balances {
		requests += b.own
	}
	return len(l.balances), requests
}
