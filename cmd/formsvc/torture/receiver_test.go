package torture_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// secret signs deliveries.
const secret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdG9ydHVyZSBjaGFtYmVyIQ=="

// A receiver gets webhooks and records hashes and counts. It shares no code with the sender, and is safe for concurrent use.
type receiver struct {
	url    string
	refuse bool // rejects one in 16 first attempts, so that there are retries

	gate atomic.Pointer[chan struct{}] // what responses wait for; nil for nothing
	held atomic.Int64                  // how many wait

	mu              sync.Mutex
	events          map[string]arrival
	taken, repeated int
	wrong           []string
}

// An arrival is a received event.
type arrival struct {
	body  string // the hash of its bytes, which are the same each time
	times int    // how often it was accepted; 0 if it was only rejected
}

// newReceiver starts a receiver, which ends with the test.
func newReceiver(t testing.TB) *receiver {
	r := &receiver{events: make(map[string]arrival)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Cleanup(r.open) // runs before Close, which waits for held requests
	r.url = server.URL
	return r
}

// shut holds all responses back until open.
func (r *receiver) shut() {
	gate := make(chan struct{})
	r.gate.Store(&gate)
}

func (r *receiver) open() {
	if gate := r.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// ServeHTTP counts a delivery before it responds.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed before it had sent everything
	}
	if gate := r.gate.Load(); gate != nil {
		r.held.Add(1)
		<-*gate
		r.held.Add(-1)
	}
	status := r.take(body, req.Header)
	time.Sleep(rand.N(5 * time.Millisecond)) // simulates work
	w.WriteHeader(status)
}

// take counts a delivery and returns the status to respond with.
func (r *receiver) take(body []byte, header http.Header) int {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	var e struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(body, &e)
	sum := hash(body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := header.Values("x-service-signature"); len(got) != 1 || got[0] != hex.EncodeToString(mac.Sum(nil)) {
		r.wrong = append(r.wrong, fmt.Sprintf("a delivery is not signed as the specification says: %.200s", body))
		return http.StatusUnauthorized
	}
	if err != nil || e.ID == "" {
		r.wrong = append(r.wrong, fmt.Sprintf("a delivery is not an event: %.200s", body))
		return http.StatusBadRequest
	}
	a := r.events[e.ID]
	if a.body != "" && a.body != sum {
		r.wrong = append(r.wrong, fmt.Sprintf("event %s came again with other bytes", e.ID))
	}
	a.body = sum
	defer func() { r.events[e.ID] = a }()
	if r.refuse && sum[0] == '0' && header.Get("X-Service-Attempt") == "1" {
		return http.StatusServiceUnavailable
	}
	r.taken++
	if a.times++; a.times > 1 {
		r.repeated++
	}
	return http.StatusOK
}

// arrived returns the arrivals by event.
func (r *receiver) arrived() map[string]arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.events)
}

// counts returns how many deliveries were accepted, and how many of them were repeated.
func (r *receiver) counts() (taken, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, r.repeated
}

func (r *receiver) faults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}
