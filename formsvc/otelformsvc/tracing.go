package otelformsvc

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// scope names the library that created the spans.
const scope = "github.com/formsvc/toolkit/formsvc/otelformsvc"

// Options changes how a [Tracing] works. The zero value is ready for use.
type Options struct {
	// TracerProvider creates the spans. Defaults to the global one, also when that is set later.
	TracerProvider trace.TracerProvider
	// Propagator reads the trace that a request belongs to from its headers. What events
	// keep and webhooks get is W3C Trace Context in any case. Defaults to that, too.
	Propagator propagation.TextMapPropagator
}

// Tracing creates spans. It wraps handlers and is a [delivery.Tracer]. It is safe for concurrent use
// and needn't be closed; shut down the TracerProvider yourself.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

var _ delivery.Tracer = (*Tracing)(nil)

// New returns a Tracing.
func New(opts *Options) *Tracing {
	o := *cmp.Or(opts, &Options{})
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	return &Tracing{tracer: o.TracerProvider.Tracer(scope), propagator: o.Propagator}
}

// TraceParent returns the span in ctx for formsvc.Options.TraceParent.
func (t *Tracing) TraceParent(ctx context.Context) string {
	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, header)
	return header["traceparent"]
}
