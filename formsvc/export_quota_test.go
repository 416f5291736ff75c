package formsvc

// Waiting returns how many requests wait for the store's answer.
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

// Held returns for how many subjects there is a balance, and how many requests
// they hold.
func (q Quotas) Held() (subjects, requests int) {
	l := q.s.quota
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.balances {
		requests += b.own
	}
	return len(l.balances), requests
}
