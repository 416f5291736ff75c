package delivery

import (
	"context"
	"net/http"
	"net/url"
)

// A Tracer creates spans for attempts. Package otelformsvc has one for OpenTelemetry.
//
// Its method is called concurrently and during every request, so it must not block.
type Tracer interface {
	// Attempt is called when an attempt begins. It may add to header, so that the receiver can
	// continue the trace. These headers replace the endpoint's custom headers but not the engine's,
	// and aren't signed. The request is sent with the returned context, which must be derived from
	// ctx. ended is called once, with the outcome of the attempt, even if it was canceled.
	Attempt(ctx context.Context, s Sending, header http.Header) (sending context.Context, ended func(Outcome))
}

// A Sending describes an attempt that begins.
type Sending struct {
	Claim  Claim
	Number int // 1 for the first attempt
	// Host is host and port of the endpoint's URL, without the rest, which may contain a secret; ""
	// if there is none.
	Host string
	// TraceParent is the event's, see [Payload].
	TraceParent string
}

// trace calls the tracer, if there is one, at the start of an attempt.
func (e *Engine) trace(ctx context.Context, j *job, number int) (context.Context, func(Outcome)) {
	if e.opts.Tracer == nil {
		return ctx, nil
	}
	s := Sending{Claim: j.claim, Number: number, TraceParent: j.trace}
	if u, err := url.Parse(j.endpoint.URL); err == nil {
		s.Host = u.Host
	}
	j.traced = make(http.Header)
	return e.opts.Tracer.Attempt(ctx, s, j.traced)
}
