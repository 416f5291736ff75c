package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// retryAfter is the Retry-After of a duplicate that comes too early, in seconds: the service's
// first delay after a failure.
const retryAfter = "60"

// noteTimeout limits the call that records the outcome of an event.
const noteTimeout = 10 * time.Second

// A State is a [Deduper]'s state of an event. The zero State isn't valid.
type State int

// The states of an event.
const (
	// Fresh means that the event is reserved for the caller, which must handle it.
	Fresh State = iota + 1
	// Done means that the event was handled before.
	Done
	// Busy means that another caller has reserved the event.
	Busy
)

// A Deduper remembers which events were handled, by their identifier (see [Delivery.EventID]), so
// that duplicates are not handled again. Set it as [Options.Deduper], or call it as
// [Verifier.Handler] does. It records an event after the event was handled: if the process dies in
// between, the event is handled again. [SQLDeduper.Reserve] avoids that for effects in a database.
//
// Receivers that handle the same events in different ways need one Deduper each. Its methods are
// safe for concurrent use. They refuse an identifier that is empty, isn't UTF-8, contains a zero
// byte or is longer than 255 bytes.
type Deduper interface {
	// Begin reserves the event for the caller and returns [Fresh], or it returns [Done] or [Busy]
	// and changes nothing. A reservation expires, so that an event whose handler died becomes fresh
	// again. If Begin fails, the caller must not handle the event, which may be reserved.
	Begin(ctx context.Context, id string) (State, error)

	// Commit records that the event was handled, even if the reservation has expired. Recording it
	// twice has no effect.
	Commit(ctx context.Context, id string) error

	// Abort cancels the reservation: the event is fresh again. It does nothing if the event was
	// handled or isn't reserved. It doesn't know whose reservation it cancels: a caller that takes
	// longer than a reservation lasts may cancel its successor's.
	Abort(ctx context.Context, id string) error
}

// maxEventID is the largest length of an identifier in bytes. The service's have 36.
const maxEventID = 255

func checkEventID(id string) error {
	switch {
	case id == "":
		return errors.New("identifier is empty") // it would make all events without one the same
	case len(id) > maxEventID:
		return fmt.Errorf("identifier of %d bytes, the limit is %d", len(id), maxEventID)
	case !utf8.ValidString(id) || strings.Contains(id, "\x00"):
		return errors.New("identifier is not text")
	}
	return nil
}

// once calls next if the event is fresh, and records the outcome.
func (v *Verifier) once(w http.ResponseWriter, r *http.Request, id string, next http.Handler) {
	state, err := v.opts.Deduper.Begin(r.Context(), id)
	switch {
	case err != nil:
		v.reject(w, r, fmt.Errorf("%w: begin: %w", ErrDeduper, err))
		return
	case state == Done:
		w.WriteHeader(http.StatusOK)
		return
	case state == Busy:
		v.reject(w, r, ErrBusy)
		return
	case state != Fresh:
		v.reject(w, r, fmt.Errorf("%w: begin: unknown state %d", ErrDeduper, state))
		return
	}
	a := &answerWriter{ResponseWriter: w}
	returned := false
	// Not recovered, so that a panic of next keeps its own stack.
	defer func() { v.note(r, id, returned && a.accepts(r.Context())) }()
	next.ServeHTTP(a, r)
	returned = true
}

// note reports to the Deduper whether the event was handled, even if the client has disconnected
// meanwhile.
func (v *Verifier) note(r *http.Request, id string, handled bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteTimeout)
	defer cancel()
	name, call := "abort", v.opts.Deduper.Abort
	if handled {
		name, call = "commit", v.opts.Deduper.Commit
	}
	if err := call(ctx, id); err != nil {
		v.opts.OnReject(r, fmt.Errorf("%w: %s: %w", ErrDeduper, name, err))
	}
}

// An answerWriter is a ResponseWriter that records the status. The other optional methods of the
// server's writer are reachable through [http.ResponseController].
type answerWriter struct {
	http.ResponseWriter
	status int // 0 while there is none
}

// accepts reports whether the HTTP response means that the event was delivered.
func (a *answerWriter) accepts(ctx context.Context) bool {
	if a.status == 0 {
		// Without a status net/http sends 200. If the client has disconnected, it gets none, and
		// next may have returned because of that.
		return ctx.Err() == nil
	}
	return a.status/100 == 2
}

// decide records the first status that isn't interim.
func (a *answerWriter) decide(status int) {
	if a.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.status = status
	}
}

func (a *answerWriter) WriteHeader(status int) {
	a.decide(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answerWriter) Write(b []byte) (int, error) {
	a.decide(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which frameworks expect.
func (a *answerWriter) Flush() { _ = a.FlushError() }

// FlushError is for http.ResponseController.
func (a *answerWriter) FlushError() error {
	a.decide(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
