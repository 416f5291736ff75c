package webhooktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// A Reply is the HTTP response of a [Receiver] to one delivery. The zero Reply is an empty 200.
type Reply struct {
	Status int         // the HTTP status. Defaults to 200
	Header http.Header // headers to add, for example Location or Retry-After. Defaults to none
	Body   string      // of the response. Defaults to none
	// Hang makes the receiver accept the delivery and not respond until the sender gives up or the
	// receiver is closed. The other fields then have no effect. Defaults to false.
	Hang bool
}

// A Received is one request to a [Receiver].
type Received struct {
	// Delivery is the verified delivery, or the zero value if Err is set. Its Body has the exact
	// received bytes.
	Delivery webhook.Delivery
	Header   http.Header // of the request
	Path     string      // of the request
	At       time.Time   // when the body was completely read
	Err      error       // why the request was refused, as [webhook.Verifier.VerifyRequest] returned it, or nil
}

// A Receiver is an HTTP server on the loopback interface that verifies and records deliveries under
// every path. A request that fails verification gets the status of [webhook.Status], is recorded
// separately and uses up no Reply. A Receiver keeps everything in memory. It is safe for concurrent
// use.
type Receiver struct {
	server   *httptest.Server
	verifier *webhook.Verifier
	closed   chan struct{}
	close    sync.Once

	mu       sync.Mutex
	queue    []Reply
	standing Reply
	accepted []Received
	rejected []Received
	changed  chan struct{} // closed and replaced when a request is recorded
}

// NewReceiver starts a Receiver for requests signed with any of secrets, with the options of its
// verifier. It ignores OnReject and Deduper, so it records duplicates. It is closed at the end of
// the test. If the secrets or options are invalid, the test fails at once.
func NewReceiver(tb testing.TB, secrets []string, opts *webhook.Options) *Receiver {
	tb.Helper()
	verifier, err := webhook.NewVerifier(secrets, opts)
	if err != nil {
		tb.Fatalf("webhooktest: new receiver: %v", err)
	}
	r := &Receiver{
		verifier: verifier,
		closed:   make(chan struct{}),
		changed:  make(chan struct{}),
	}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	tb.Cleanup(r.Close)
	return r
}

// URL returns the receiver's address, for example "http://127.0.0.1:40123". Every path below it
// accepts deliveries.
func (r *Receiver) URL() string { return r.server.URL }

// Close ends hanging responses and stops the server, so that its address refuses connections.
// Recorded requests stay readable. Closing twice has no effect.
func (r *Receiver) Close() {
	r.close.Do(func() {
		close(r.closed)
		r.server.Close()
	})
}

// Answer queues replies: each of the next verified deliveries gets one, in the order of arrival.
// Afterwards the default reply is used again.
func (r *Receiver) Answer(replies ...Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, replies...)
}

// AnswerAlways sets the default reply, which is used while none is queued. It is 200 at the start.
func (r *Receiver) AnswerAlways(reply Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standing = reply
}

// Deliveries returns the verified deliveries in the order of arrival, including duplicates.
func (r *Receiver) Deliveries() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.accepted...)
}

// Rejected returns the requests that failed verification, in the order of arrival.
func (r *Receiver) Rejected() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.rejected...)
}

// Wait waits for at least n verified deliveries and returns all of them. If ctx ends before, it
// returns the deliveries so far and the error of ctx. A delivery is recorded before its response is
// sent.
func (r *Receiver) Wait(ctx context.Context, n int) ([]Received, error) {
	for {
		r.mu.Lock()
		got := append([]Received(nil), r.accepted...)
		refused := len(r.rejected)
		changed := r.changed
		r.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got, fmt.Errorf("webhooktest: %d of %d deliveries came, %d requests were refused: %w",
				len(got), n, refused, ctx.Err())
		}
	}
}

// serve is the receiver's handler.
func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	d, err := r.verifier.VerifyRequest(w, req)
	reply := r.record(Received{
		Delivery: d,
		Header:   req.Header.Clone(),
		Path:     req.URL.Path,
		At:       time.Now(),
		Err:      err,
	})
	if err != nil {
		http.Error(w, err.Error(), webhook.Status(err))
		return
	}
	if reply.Hang {
		select {
		case <-req.Context().Done():
		case <-r.closed:
		}
		// Returning would send 200.
		panic(http.ErrAbortHandler)
	}
	for name, values := range reply.Header {
		for _, value := range values {
			w.Header().Add(name, value)
		}
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	// It doesn't matter if the sender has disconnected.
	_, _ = io.WriteString(w, reply.Body)
}

// record records a request, wakes callers of Wait and returns the reply.
func (r *Receiver) record(got Received) Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply := r.standing
	if got.Err != nil {
		r.rejected = append(r.rejected, got)
	} else {
		r.accepted = append(r.accepted, got)
		if len(r.queue) > 0 {
			reply, r.queue = r.queue[0], r.queue[1:]
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return reply
}
