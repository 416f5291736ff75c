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
	"sync"
	"testing"
	"time"
)

// A kind is the kind of operation of an entry.
type kind string

const (
	create   kind = "create"   // a response
	complete kind = "complete" // its status
	upload   kind = "upload"   // a file of it
	comment  kind = "comment"  // on it
	sign     kind = "sign"     // it
)

// An outcome is what the client knows about an operation.
type outcome int

const (
	unknown outcome = iota // no response, an incomplete one or a 5xx: it may have happened once
	done                   // a 2xx: it happened
	refused                // a 4xx: it did not happen
)

// An entry is one operation that a client wants, with any number of requests.
type entry struct {
	kind   kind
	marker string // unique, and stored with the record
	of     string // the UUID of the response that it is about, except for create
	sha256 string // of the bytes of an upload, in hexadecimal
	key    string // the Idempotency-Key of all its requests; "" if there is only one request

	tries   int
	outcome outcome
	status  int    // of the last response
	uuid    string // of the created record, once known
}

// A ledger records the intents of clients and the responses they got, outside of the attacked processes. Its methods are safe
// for concurrent use; its fields are for reading once the clients have stopped.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry // by marker
	wrong   []string
}

// intend records an entry before each of its requests.
func (l *ledger) intend(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.entries[e.marker]; other != nil && other != e {
		panic("the marker " + e.marker + " is used twice")
	}
	l.entries[e.marker] = e
	e.tries++
}

// answer records the result of a request: the status of its response, or 0, and the UUID if there is one. It is a fault if
// it contradicts an earlier one.
func (l *ledger) answer(e *entry, status int, uuid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.uuid != "" && uuid != "" && e.uuid != uuid {
		l.wrong = append(l.wrong, fmt.Sprintf("%s %q was answered twice, with %s and with %s", e.kind, e.marker, e.uuid, uuid))
	}
	if e.outcome == done {
		return // that it was done once stays true
	}
	e.outcome, e.status = unknown, status
	switch {
	case status >= 200 && status < 300:
		e.outcome = done
	case status >= 400 && status < 500 && e.tries == 1: // otherwise an earlier request may have been carried out
		e.outcome = refused
	}
	if uuid != "" {
		e.uuid = uuid
	}
}

// fault records a response that is wrong by itself.
func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// secret signs deliveries.
const secret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdG9ydHVyZSBjaGFtYmVyIQ=="

// A receiver gets webhooks and records hashes and counts. It shares no code with the sender.
type receiver struct {
	url    string
	refuse bool // rejects one in 16 first attempts, so that there are retries

	mu     sync.Mutex
	events map[string]arrival
	wrong  []string
}

// An arrival is a received event: the hash of its bytes, and how often it was accepted.
type arrival struct {
	body  string
	times int
}

// newReceiver starts a receiver, which ends with the test.
func newReceiver(t testing.TB) *receiver {
	r := &receiver{events: make(map[string]arrival)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP counts a delivery before it responds.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed before it had sent everything
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
	_ = json.Unmarshal(body, &e) // the feed has no event without an ID
	sum := hash(body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := header.Values("x-service-signature"); len(got) != 1 || got[0] != hex.EncodeToString(mac.Sum(nil)) {
		r.wrong = append(r.wrong, fmt.Sprintf("a delivery is not signed as the specification says: %.200s", body))
		return http.StatusUnauthorized
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
	a.times++
	return http.StatusOK
}

// arrived returns the arrivals by event.
func (r *receiver) arrived() map[string]arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.events)
}

// accepted returns how many events were accepted.
func (r *receiver) accepted() (events int) {
	for _, a := range r.arrived() {
		events += min(a.times, 1)
	}
	return events
}
