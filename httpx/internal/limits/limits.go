// Package limits identifies and rate-limits clients of the API, the public forms and the console.
package limits

import (
	"crypto/rand"
	"math"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Size is how many names a [Limiter] remembers.
const Size = 10_000

// A Limiter has a token bucket for each name. It drops the names that were unused the longest. It is safe for concurrent use.
type Limiter struct {
	Rate  rate.Limit
	Burst int

	buckets *lru.Cache[string, *rate.Limiter]
}

// NewLimiter returns a Limiter with buckets of that rate and size.
func NewLimiter(limit rate.Limit, burst int) *Limiter {
	buckets, _ := lru.New[string, *rate.Limiter](Size) // fails only without a size
	return &Limiter{limit, burst, buckets}
}

// FailureBurst is how often authentication may fail from one [Network] at once, and then once a second. A valid key, link or password always
// passes.
const FailureBurst = 120

// NewFailures returns a Limiter of failures.
func NewFailures() *Limiter { return NewLimiter(rate.Every(time.Second), FailureBurst) }

// Take takes a token. If there is none, it returns the wait for the next one.
func (l *Limiter) Take(name string, now time.Time) (wait time.Duration, ok bool) {
	bucket, ok := l.buckets.Get(name)
	if !ok {
		bucket = rate.NewLimiter(l.Rate, l.Burst)
		if other, ok, _ := l.buckets.PeekOrAdd(name, bucket); ok { // added meanwhile
			bucket = other
		}
	}
	r := bucket.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait <= 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

// A Recent keeps values by name until a time. When it is full, it drops those that were unused the longest. It is safe for
// concurrent use.
type Recent[V any] struct {
	values *lru.Cache[string, value[V]]
}

type value[V any] struct {
	v     V
	until time.Time
}

// NewRecent returns a Recent for that many values.
func NewRecent[V any](most int) Recent[V] {
	values, _ := lru.New[string, value[V]](most) // fails only without a size
	return Recent[V]{values}
}

// Put keeps a value.
func (r Recent[V]) Put(name string, v V, until time.Time) { r.values.Add(name, value[V]{v, until}) }

// Get returns a value whose time has not passed.
func (r Recent[V]) Get(name string, now time.Time) (v V, ok bool) {
	if kept, ok := r.values.Get(name); ok && now.Before(kept.until) {
		return kept.v, true
	}
	return v, false
}

// Drop removes a value.
func (r Recent[V]) Drop(name string) { r.values.Remove(name) }

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

// RequestID returns the client's X-Request-Id if it is well-formed, or a new one.
func RequestID(r *http.Request) string {
	if values := r.Header["X-Request-Id"]; len(values) == 1 && requestIDForm.MatchString(values[0]) {
		return values[0]
	}
	return rand.Text()
}

// requestIDForm is a well-formed X-Request-Id.
var requestIDForm = regexp.MustCompile(`^[!-~]{1,200}$`)
