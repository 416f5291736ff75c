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

// A Reply is what a [Receiver] answers to one delivery. The zero Reply is an
// empty 200.
type Reply struct {
	// Status is the HTTP status. Defaults to 200.
	Status int
	// Header are headers to add, for example Location or Retry-After. Defaults
	// to none.
	Header http.Header
	// Body is the body of the answer. Defaults to none.
	Body string
	// Hang makes the receiver take the delivery and not answer until the
	// sender gives up or the receiver is closed. The other fields are then
	// without effect. Defaults to false.
	Hang bool
}

// A Received is one request that a [Receiver] got.
type Received struct {
	// Delivery is what was verified, or the zero value if Err is set. Its Body
	// has the exact bytes that came.
	Delivery webhook.Delivery
	// Header are the headers of the request.
	Header http.Header
	// Path is the path of the request.
	Path string
	// At is when the body had been read.
	At time.Time
	// Err is why the request was refused, as [webhook.Verifier.VerifyRequest]
	// returned it, or nil.
	Err error
}

// A Receiver is an HTTP server on the loopback interface that verifies and
// records deliveries under every path. A request that does not verify is
// answered as [webhook.Status] says and recorded apart, without using up a
// Reply. It keeps everything in memory. It is safe for concurrent use.
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
	changed  chan struct{} // closed and replaced when a request was recorded
}

// NewReceiver starts a Receiver for what was signed with any of secrets, with
// the verifier's options, of which OnReject and Deduper are not used: every
// repetition is recorded. It is closed when the test ends. The test fails at once if the secrets or options are not valid.
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

// URL returns the receiver's address, for example "http://127.0.0.1:40123".
// Every path under it receives.
func (r *Receiver) URL() string { return r.server.URL }

// Close ends the answers that hang and stops the server, so that its address
// refuses connections. What was recorded stays readable. Closing again does
// nothing.
func (r *Receiver) Close() {
	r.close.Do(func() {
		close(r.closed)
		r.server.Close()
	})
}

// Answer queues replies: each of the next deliveries that verify gets one, in
// the order of their arrival. After them the standing reply is used again.
func (r *Receiver) Answer(replies ...Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, replies...)
}

// AnswerAlways sets the standing reply, which is used while none is queued. It
// is 200 at the start.
func (r *Receiver) AnswerAlways(reply Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standing = reply
}

// Deliveries returns the deliveries that verified, in the order of their
// arrival. Repetitions are listed as often as they came.
func (r *Receiver) Deliveries() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.accepted...)
}

// Rejected returns the requests that did not verify, in the order of their
// arrival.
func (r *Receiver) Rejected() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.rejected...)
}

// Wait returns the deliveries as soon as at least n have verified. When ctx
// ends before, it returns those that have come and an error that is the
// context's. A delivery counts once it is recorded, which is before it is
// answered.
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
		// Returning would answer 200.
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
	// A sender that has left is not this receiver's concern.
	_, _ = io.WriteString(w, reply.Body)
}

// record notes a request, wakes those who wait and returns the reply to it.
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
