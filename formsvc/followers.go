package formsvc

import (
	"sync"
	"sync/atomic"
)

// followers are the running calls of [Events.Follow] in a Service.
type followers struct {
	count atomic.Int64 // avoids taking the lock if there are no followers
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

// tell wakes the followers of an account, or all followers if account is "".
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

// raised announces an event of the account to followers. In a bound transaction it does nothing:
// the host application calls [Service.Notify] after the commit.
func (c *core) raised(account ID) {
	if !c.bound {
		c.followers.tell(account)
	}
}

// Notify makes [Events.Follow] and the delivery engine of this process look for events at once.
// Call it on the unbound Service after you commit a transaction in which a bound one
// ([Service.With]) raised events. Without it they find the events at their next poll.
func (s *Service) Notify() {
	s.core.followers.tell("")
	s.core.store.Notify()
}
