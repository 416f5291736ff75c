// Package limits identifies and rate-limits clients of the API, the public forms and the console.
package limits

import (
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Size is the smallest number of names that a [Limiter] remembers.
const Size = 5_000

// A Limiter has a token bucket for each name. It drops the names that were unused the longest, so that it remembers at most twice
// [Size]. It is safe for concurrent use.
type Limiter struct {
	Rate  rate.Limit
	Burst int

	mu    sync.Mutex
	young map[string]*rate.Limiter // used since old was filled
	old   map[string]*rate.Limiter
}

// Take takes a token. If there is none, it returns the wait for the next one.
func (l *Limiter) Take(name string, now time.Time) (wait time.Duration, ok bool) {
	bucket := l.bucket(name)
	r := bucket.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait <= 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

func (l *Limiter) bucket(name string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.young[name]
	if bucket != nil {
		return bucket
	}
	if bucket = l.old[name]; bucket == nil {
		bucket = rate.NewLimiter(l.Rate, l.Burst)
	}
	if l.young == nil || len(l.young) >= Size {
		l.old, l.young = l.young, make(map[string]*rate.Limiter)
	}
	l.young[name] = bucket
	return bucket
}

// A Recent keeps values by name until a time. When it is full, it is cleared. It is safe for concurrent use.
type Recent[V any] struct {
	Most int

	mu     sync.Mutex
	values map[string]value[V]
}

type value[V any] struct {
	v     V
	until time.Time
}

// Put keeps a value.
func (r *Recent[V]) Put(name string, v V, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil || len(r.values) >= r.Most {
		r.values = make(map[string]value[V])
	}
	r.values[name] = value[V]{v, until}
}

// Get returns a value whose time has not passed.
func (r *Recent[V]) Get(name string, now time.Time) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, ok := r.values[name]
	if ok && !now.Before(kept.until) {
		delete(r.values, name)
		return v, false
	}
	return kept.v, ok
}

// Drop removes a value.
func (r *Recent[V]) Drop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.values, name)
}

// A Pool shares bytes or places that are held for as long as a client likes. A tenant gets more only if it then holds no more than
// was free, so that one alone never has all of them. It is safe for concurrent use.
type Pool struct {
	mu   sync.Mutex
	free int64 // negative if Force took more
	held map[string]int64
}

// NewPool returns a pool of n.
func NewPool(n int64) *Pool { return &Pool{free: n, held: make(map[string]int64)} }

// Take reserves n for a tenant, and reports whether it could.
func (p *Pool) Take(tenant string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant]+n > p.free {
		return false
	}
	p.add(tenant, n)
	return true
}

// Give frees n.
func (p *Pool) Give(tenant string, n int64) { p.Force(tenant, -n) }

// Force reserves n even if it isn't free.
func (p *Pool) Force(tenant string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(tenant, n)
}

func (p *Pool) add(tenant string, n int64) {
	p.free -= n
	if held := p.held[tenant] + n; held != 0 {
		p.held[tenant] = held
	} else {
		delete(p.held, tenant)
	}
}

// Seconds returns a wait in whole seconds, rounded up, but not less than least.
func Seconds(wait time.Duration, least int) int { return max(int(math.Ceil(wait.Seconds())), least) }

// RemoteHost returns the host of RemoteAddr.
func RemoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Network returns the name under which a client's address is counted: the address, or for IPv6 its /64, which one client commonly
// has alone.
func Network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address[:min(len(address), 64)]
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
