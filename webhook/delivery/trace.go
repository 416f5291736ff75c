package delivery

import (
	"context"
	"net/http"
	"net/url"
)

// A Tracer makes spans of attempts. Package otelformsvc has one for OpenTelemetry.
//
// Its method is called by several goroutines at once, on the way of every request, so
// it must return at once.
type Tracer interface {
	// Attempt tells that an attempt begins. What it puts into header is sent with the
	// request, in place of headers of that name which the endpoint has, but not of the
	// engine's own; so the receiver can go on with the trace. No signature covers it.
	// The request is sent with the context that it returns, which must be made from ctx.
	// ended is called once, with what came of the attempt, also when it was cut off.
	Attempt(ctx context.Context, s Sending, header http.Header) (sending context.Context, ended func(Outcome))
}

// A Sending is an attempt that begins.
type Sending struct {
	Claim  Claim
	Number int // 1 for the first attempt
	// Host is host and port of the endpoint's URL, without the rest, which may have a
	// secret; "" if there is none.
	Host string
	// TraceParent is that of the event, see [Payload].
	TraceParent string
}

// trace tells the tracer, if there is one, that an attempt begins.
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
