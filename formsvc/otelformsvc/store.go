package otelformsvc

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
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
// The result is no [delivery.Queue]: the engine gets the store itself, since each of its
// calls is for many deliveries and belongs to no request. What [formsvc.Service.With] is
// given has to be wrapped anew.
func (t *Tracing) Store(store formsvc.Store, opts *StoreOptions) formsvc.Store {
	var o StoreOptions
	if opts != nil {
		o = *opts
	}
	var system []attribute.KeyValue
	if o.System != "" {
		system = []attribute.KeyValue{semconv.DBSystemNameKey.String(o.System)}
	}
	return storage.Around(store, func(ctx context.Context, method string, next func(context.Context) (int, error)) error {
		if !o.Roots && !trace.SpanContextFromContext(ctx).IsValid() {
			_, err := next(ctx)
			return err
		}
		ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(semconv.DBOperationName(method)), trace.WithAttributes(system...))
		var err error
		defer func() { end(span, err) }()
		_, err = next(ctx)
		return err
	})
}
