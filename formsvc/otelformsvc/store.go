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
	// System is the attribute db.system.name: "sqlite" or "postgresql". Defaults to leaving the
	// attribute out.
	System string
	// Roots also creates spans for calls outside of any span, such as some of
	// [formsvc.Service.Run]. Defaults to creating them within other spans only.
	Roots bool
}

// Store returns the store with a span for each call. The span includes the time that a call waits
// for others that the store commits together.
//
// The result isn't a [delivery.Queue]: give the engine the store itself, since each of its calls is
// for many deliveries and belongs to no request. Wrap each store that you pass to
// [formsvc.Service.With].
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
