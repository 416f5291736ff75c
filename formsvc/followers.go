package formsvc

import (
	"sync"
	"sync/atomic"
)

// followers are the calls of [Events.Follow] that are under way in a Service.
type followers struct {
	count atomic.Int64 // so that nobody takes the lock for nothing
	mu    sync.Mutex
	set   map[*follower]struct{}
}

func (f *followers) join(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = make(map[*follower]struct{})
	}
	f.set[one] = struct{}{}
	f.count.Add(1)
}

func (f *followers) leave(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.set, one)
	f.count.Add(-1)
}

// tell wakes those who follow an account, or everybody if that is "".
func (f *followers) tell(account ID) {
	if f.count.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.set {
		if account == "" || one.query.AllAccounts || one.query.AccountID == account {
			select {
			case one.heard <- struct{}{}:
			default: // it will look anyway
			}
		}
	}
}

// raised says that an event of the account was committed, or will be by whoever
// has the transaction: then [Service.Notify] is to say so.
func (c *core) raised(account ID) {
	if !c.bound {
		c.followers.tell(account)
	}
}

// Notify says that a transaction has committed in which a Service that is bound to it
// ([Service.With]) raised events, so that [Events.Follow] and the delivery engine
// of this process look at once, instead of when they next poll. Call it after the commit,
// on the Service that is not bound.
func (s *Service) Notify() {
	s.core.followers.tell("")
	s.core.store.Notify()
}
