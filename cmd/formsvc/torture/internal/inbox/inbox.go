// Package inbox receives webhooks and records hashes and counts, for large numbers of deliveries. It shares no code with
// the sender.
package inbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Secret is the secret that signs deliveries.
const Secret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdG9ydHVyZSBjaGFtYmVyIQ=="

// Aside is a path that accepts everything and counts nothing, for temporary webhooks.
const Aside = "/aside"

// An Inbox is a receiver. It is safe for concurrent use.
type Inbox struct {
	URL string
	// Delay is the maximum response time; each response takes a random part of it.
	Delay time.Duration
	// Refuse makes it reject one in 16 first attempts, so that there are retries.
	Refuse bool

	gate atomic.Pointer[chan struct{}]
	held atomic.Int64

	mu       sync.Mutex
	arrived  map[string]*Arrival // by event
	taken    int
	repeated int
	faults   []string
}

// An Arrival is a received event.
type Arrival struct {
	Body  [sha256.Size]byte // the hash of its bytes, which are the same each time
	Times int               // how often it was accepted
}

// New starts a receiver, which ends with the test.
func New(t testing.TB) *Inbox {
	t.Helper()
	b := &Inbox{arrived: make(map[string]*Arrival)}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	t.Cleanup(b.Open) // runs before Close, which waits for held requests
	b.URL = server.URL
	return b
}

// Shut holds all responses back until Open.
func (b *Inbox) Shut() {
	gate := make(chan struct{})
	if !b.gate.CompareAndSwap(nil, &gate) {
		panic("inbox: shut twice")
	}
}

// Open releases the responses that Shut held back.
func (b *Inbox) Open() {
	if gate := b.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// Held returns the number of deliveries that are held back.
func (b *Inbox) Held() int { return int(b.held.Load()) }

// ServeHTTP receives a delivery. It counts it before it responds.
func (b *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed before it had sent everything
	}
	if r.URL.Path == Aside {
		return
	}
	if gate := b.gate.Load(); gate != nil {
		b.held.Add(1)
		<-*gate
		b.held.Add(-1)
	}
	status := b.take(body, r.Header)
	if status == http.StatusOK && b.Delay > 0 {
		time.Sleep(rand.N(b.Delay)) // simulates work
	}
	w.WriteHeader(status)
}

// take counts a delivery and returns the status to respond with.
func (b *Inbox) take(body []byte, header http.Header) int {
	mac := hmac.New(sha256.New, []byte(Secret))
	mac.Write(body)
	signed := hex.EncodeToString(mac.Sum(nil))
	var e struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(body, &e)
	sum := sha256.Sum256(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := header.Values("x-service-signature"); len(got) != 1 || got[0] != signed {
		b.fault("a delivery is not signed as the specification says: %.200s", body)
		return http.StatusUnauthorized
	}
	if err != nil || e.ID == "" {
		b.fault("a delivery is not an event: %.200s", body)
		return http.StatusBadRequest
	}
	a := b.arrived[e.ID]
	switch {
	case a == nil:
		a = &Arrival{Body: sum}
		b.arrived[e.ID] = a
	case a.Body != sum:
		b.fault("event %s came again with other bytes", e.ID)
	}
	if b.Refuse && sum[0] < 16 && header.Get("X-Service-Attempt") == "1" {
		return http.StatusServiceUnavailable
	}
	a.Times++
	b.taken++
	if a.Times > 1 {
		b.repeated++
	}
	return http.StatusOK
}

func (b *Inbox) fault(format string, args ...any) {
	if len(b.faults) < 20 {
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
	}
}

// Arrived returns the arrivals by event. An event that was only rejected has Times 0.
func (b *Inbox) Arrived() map[string]Arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := make(map[string]Arrival, len(b.arrived))
	for id, a := range b.arrived {
		m[id] = *a
	}
	return m
}

// Count returns how many deliveries were accepted, and how many of them were repeated.
func (b *Inbox) Count() (taken, repeated int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.repeated
}

// Faults returns the faults of deliveries.
func (b *Inbox) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.faults...)
}
