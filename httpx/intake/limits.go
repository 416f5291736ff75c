package intake

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/formsvc"
)

// addresses is how many addresses with a campaign a limiter remembers. One more clears it.
const addresses = 10_000

// A limiter limits how often each address sends a form. It is safe for concurrent use.
type limiter struct {
	perMinute int // negative: no limit

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// take counts a form. If it is one too many, it returns the wait until the next one.
func (l *limiter) take(name string, now time.Time) (wait time.Duration, ok bool) {
	if l.perMinute < 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[name]
	if b == nil {
		if b = rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute); l.buckets == nil || len(l.buckets) >= addresses {
			l.buckets = make(map[string]*rate.Limiter)
		}
		l.buckets[name] = b
	}
	r := b.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait, wait <= 0
}

// Limits of the campaigns that are kept for posts: how long, how many, and how large.
const (
	campaignAge  = time.Second
	campaignsMax = 1_000
	campaignSize = 32 << 10 // bytes
)

// campaigns keeps campaigns by the token of their form, so that a busy form isn't read for each post. When it is full, it
// is cleared. It is safe for concurrent use.
type campaigns struct {
	mu      sync.Mutex
	byToken map[string]readCampaign
}

type readCampaign struct {
	*formsvc.Campaign

	at time.Time
}

// get returns a campaign that was read within the last second, or nil. It must not be changed.
func (k *campaigns) get(token string, now time.Time) *formsvc.Campaign {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.byToken[token]; now.Sub(c.at) < campaignAge {
		return c.Campaign
	}
	return nil
}

func (k *campaigns) drop(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byToken, token)
}

func (k *campaigns) put(token string, c *formsvc.Campaign, now time.Time) {
	if c.Size() > campaignSize {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byToken == nil || len(k.byToken) >= campaignsMax {
		k.byToken = make(map[string]readCampaign)
	}
	k.byToken[token] = readCampaign{c, now}
}

// seconds returns a wait for Retry-After.
func seconds(wait time.Duration) string { return strconv.Itoa(max(int(math.Ceil(wait.Seconds())), 1)) }

// network returns what an address is counted under: for IPv6 its /64, which one visitor commonly has alone.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address[:min(len(address), 64)]
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}

// places are what large bodies hold while they arrive. An address gets one only if it then holds no more than are free,
// so that one alone never has them all. They are safe for concurrent use.
type places struct {
	mu   sync.Mutex
	free int
	held map[string]int
}

func (p *places) take(address string) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[address] >= p.free {
		return nil, false
	}
	p.free--
	p.held[address]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free++
		if p.held[address]--; p.held[address] == 0 {
			delete(p.held, address)
		}
	}, true
}

// How many requests use the service at once, and how long others wait for a slot.
const (
	slots    = 64
	slotWait = time.Second
)

// acquire takes a slot. The caller must release it.
func (h *Handler) acquire(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	if h.slots.Acquire(waiting, 1) == nil {
		return nil
	}
	return cmp.Or(ctx.Err(), errBusy)
}

// A body may pause for patience in all, and a second for every slowest bytes, as uploads to the API may.
const (
	patience = 60 * time.Second
	slowest  = 16 << 10
)

// A pacedBody extends the deadlines of a request while its body arrives fast enough.
type pacedBody struct {
	io.ReadCloser

	control *http.ResponseController
	began   time.Time
	moved   int64
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	deadline := b.began.Add(patience + time.Duration(b.moved/slowest)*time.Second)
	_ = b.control.SetReadDeadline(deadline)                    // not every server has deadlines
	_ = b.control.SetWriteDeadline(deadline.Add(2 * patience)) // for storing and the reply
	n, err := b.ReadCloser.Read(p)
	b.moved += int64(n)
	return n, err
}
