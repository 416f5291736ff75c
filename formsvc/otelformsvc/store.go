package otelformsvc

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc"
)

// StoreOptions are the optional settings of [Tracing.Store]. The zero value is ready for
// use.
type StoreOptions struct {
	// System is what keeps the data, as the attribute db.system.name has it: "sqlite",
	// "postgresql". Defaults to leaving the attribute out.
	System string
	// Roots makes a span of a call that is in none, too, such as those of
	// [formsvc.Service.Run] that have no operation of their own. Defaults to spans within
	// others only.
	Roots bool
}

// Store returns the store with a span of each call. A call that waits for others, which a
// store may commit together, has that time in its span.
//
// The result is a [formsvc.Scrubber] if the store is one, but no [delivery.Queue]: the engine
// gets the store itself, since each of its calls is for many deliveries and belongs to no
// request. What [formsvc.Service.With] is given has to be wrapped anew.
func (t *Tracing) Store(store formsvc.Store, opts *StoreOptions) formsvc.Store {
	var o StoreOptions
	if opts != nil {
		o = *opts
	}
	s := &tracedStore{Store: store, tracer: t.tracer, roots: o.Roots}
	if o.System != "" {
		s.system = []attribute.KeyValue{semconv.DBSystemNameKey.String(o.System)}
	}
	if scrubber, ok := store.(formsvc.Scrubber); ok {
		return scrubbingStore{s, scrubber}
	}
	return s
}

// A tracedStore is a store with a span of each call.
type tracedStore struct {
	formsvc.Store

	tracer trace.Tracer
	system []attribute.KeyValue
	roots  bool
}

// A scrubbingStore is a tracedStore that can overwrite what was removed.
type scrubbingStore struct {
	*tracedStore
	formsvc.Scrubber
}

// span begins the span of a call and replaces its context.
func (s *tracedStore) span(ctx *context.Context, method string) call {
	if !s.roots && !trace.SpanContextFromContext(*ctx).IsValid() {
		return call{}
	}
	traced, span := s.tracer.Start(*ctx, method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(semconv.DBOperationName(method)), trace.WithAttributes(s.system...))
	*ctx = traced
	return call{span}
}

// A call is the span of a call, or none.
type call struct{ span trace.Span }

func (c call) end(err *error) {
	if c.span != nil {
		end(c.span, *err)
	}
}
