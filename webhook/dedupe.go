package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// retryAfter is what a repetition that comes too early is told to wait, in
// seconds: the service's first delay after a failure.
const retryAfter = "60"

// noteTimeout bounds how long it may take to note what became of an event.
const noteTimeout = 10 * time.Second

// A State is what a [Deduper] knows of an event. The zero State is none.
type State int

// The states of an event.
const (
	// Fresh means that the caller is the one to handle the event, and has
	// reserved it.
	Fresh State = iota + 1
	// Done means that the event was handled before.
	Done
	// Busy means that another caller has reserved the event.
	Busy
)

// String returns the state's name in lower case.
func (s State) String() string {
	switch s {
	case Fresh:
		return "fresh"
	case Done:
		return "done"
	case Busy:
		return "busy"
	default:
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
}

// A Deduper remembers which events were handled, by their identifier (see
// [Delivery.EventID]), so that repetitions are not handled again. Give it to
// [Options.Deduper], or call it as [Verifier.Handler] does.
//
// It notes that an event was handled after that was done. Whoever dies in
// between has it handled again. If that must not happen, and the effect is in a
// database, use [SQLDeduper.Reserve], which is one with the effect.
//
// Receivers that do different things with the same events need a Deduper each.
// Its methods are safe for concurrent use. They refuse an empty identifier.
type Deduper interface {
	// Begin reserves the event for the caller and returns [Fresh], or it
	// returns [Done] or [Busy] and changes nothing. A reservation lapses after
	// a while, so that an event whose handler died is fresh again. When Begin
	// fails, the event must not be handled and may be reserved.
	Begin(ctx context.Context, id string) (State, error)

	// Commit notes that the event was handled, whether or not the reservation
	// has lapsed. Noting it again does nothing.
	Commit(ctx context.Context, id string) error

	// Abort gives the reservation back: the event is fresh again. It does
	// nothing for one that was handled or is not reserved. It can't tell whose
	// reservation it is: one who is slower than a reservation lasts may give
	// back his successor's.
	Abort(ctx context.Context, id string) error
}

// once calls next if the event is fresh, and notes what became of it.
func (v *Verifier) once(w http.ResponseWriter, r *http.Request, id string, next http.Handler) {
	state, err := v.deduper.Begin(r.Context(), id)
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
	// Not recovered: the panic of next goes on with its own stack.
	defer func() { v.note(r, id, returned && a.accepts(r.Context())) }()
	next.ServeHTTP(a, r)
	returned = true
}

// note tells the Deduper whether the event was handled. The client may have left
// meanwhile, which changes nothing about that.
func (v *Verifier) note(r *http.Request, id string, handled bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteTimeout)
	defer cancel()
	name, call := "abort", v.deduper.Abort
	if handled {
		name, call = "commit", v.deduper.Commit
	}
	if err := call(ctx, id); err != nil {
		v.onReject(r, fmt.Errorf("%w: %s: %w", ErrDeduper, name, err))
	}
}

// An answerWriter is a ResponseWriter that notes the status. It has the optional
// methods of net/http's own that are common in handlers; the others are found
// through [http.ResponseController].
type answerWriter struct {
	http.ResponseWriter
	status int // 0 while there is none
}

// accepts tells whether the answer has the service take the event as delivered.
func (a *answerWriter) accepts(ctx context.Context) bool {
	if a.status == 0 {
		// Without an answer net/http makes it 200. When the client has left, it
		// gets none, and next may have returned because of that.
		return ctx.Err() == nil
	}
	return a.status/100 == 2
}

// decide notes the first status that is the answer's own.
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

// WriteString is for io.WriteString.
func (a *answerWriter) WriteString(s string) (int, error) {
	a.decide(http.StatusOK)
	return io.WriteString(a.ResponseWriter, s)
}

// ReadFrom is for io.Copy.
func (a *answerWriter) ReadFrom(src io.Reader) (int64, error) {
	a.decide(http.StatusOK)
	return io.Copy(a.ResponseWriter, src)
}

// Flush is for those who ask for an http.Flusher.
func (a *answerWriter) Flush() { _ = a.FlushError() }

// FlushError is for http.ResponseController.
func (a *answerWriter) FlushError() error {
	a.decide(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
