//go:build long

package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// An inbox is a webhook receiver that counts deliveries without keeping them. It is safe for concurrent use.
type inbox struct {
	url string
	// delay is the maximum response time; each response takes a random part of it.
	delay time.Duration

	mu      sync.Mutex
	arrived map[happening]int // how often each was accepted
	markers map[string]string // by response: the marker in its response.created
	bodies  map[string][sha256.Size]byte
	faults  []string
}

// A happening is the type and the response of an event.
type happening struct{ event, response string }

// newInbox starts an inbox for deliveries that are signed with secret.
func newInbox(t testing.TB, delay time.Duration) *inbox {
	t.Helper()
	b := &inbox{
		delay: delay, arrived: make(map[happening]int),
		markers: make(map[string]string), bodies: make(map[string][sha256.Size]byte),
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// ServeHTTP receives a delivery. It counts it before it responds.
func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed before it had sent everything
	}
	if status := b.take(body, r.Header); status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	if b.delay > 0 {
		time.Sleep(rand.N(b.delay)) // simulates work
	}
}

// take counts a delivery and returns the status to respond with.
func (b *inbox) take(body []byte, header http.Header) int {
	var e event
	err := json.Unmarshal(body, &e)
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := sha256.Sum256(body)
	first, known := b.bodies[e.ID]
	switch {
	case !signedBySpec(secret, body, header):
		b.fault("a delivery is not signed as the specification says: %.200s", body)
		return http.StatusUnauthorized
	case err != nil || e.ID == "" || e.Data.Response.UUID == "":
		b.fault("a delivery is not an event: %.200s", body)
	case known && !bytes.Equal(first[:], sum[:]):
		b.fault("event %s came again with other bytes", e.ID)
	}
	b.bodies[e.ID] = sum
	b.arrived[happening{e.Event, e.Data.Response.UUID}]++
	if e.Event == "response.created" {
		marker, err := e.Data.Response.marker()
		if err != nil {
			b.fault("response.created: %v", err)
		}
		b.markers[e.Data.Response.UUID] = marker
	}
	return http.StatusOK
}

func (b *inbox) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// missing returns the events of want that have not arrived.
func (b *inbox) missing(want []happening) []happening {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(want), func(h happening) bool { return b.arrived[h] > 0 })
}

// wait waits until everything in want has arrived. It fails if nothing new arrives for long, but doesn't test the speed.
func (b *inbox) wait(t testing.TB, want []happening) {
	t.Helper()
	missing, progress := b.missing(want), time.Now()
	for len(missing) > 0 && time.Since(progress) < patience {
		time.Sleep(100 * time.Millisecond) // between two checks
		before := len(missing)
		if missing = b.missing(missing); len(missing) < before {
			progress = time.Now()
		}
	}
	for _, h := range missing[:min(5, len(missing))] {
		t.Errorf("%s of response %s never arrived", h.event, h.response)
	}
	if len(missing) > 0 {
		t.Errorf("%d of %d events never arrived; the last one that did came %v ago", len(missing), len(want), patience)
	}
}

// check checks that only want arrived, that every response.created has the right marker, and that no delivery was invalid.
// It returns the number of repeated deliveries.
func (b *inbox) check(t testing.TB, want []happening, markers map[string]string) (repeated int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Error(fault)
	}
	invented := maps.Clone(b.arrived)
	for _, h := range want {
		delete(invented, h)
	}
	for h := range invented {
		t.Errorf("%s of response %s arrived, but did not happen", h.event, h.response)
	}
	for uuid, marker := range b.markers {
		if markers[uuid] != marker {
			t.Errorf("response.created of %s has the marker %q, the response has %q", uuid, marker, markers[uuid])
		}
	}
	for _, n := range b.arrived {
		repeated += n - 1
	}
	return repeated
}
