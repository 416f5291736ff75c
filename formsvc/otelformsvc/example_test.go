package otelformsvc_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/otelformsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// Trace a service: each operation is a span, with its calls of the store as children. Package
// examples/opentelemetry adds requests and webhooks.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // yours sends to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	tracing := otelformsvc.New(&otelformsvc.Options{TracerProvider: provider})

	forms, err := formsvc.New(tracing.Store(memory.New(), nil), &formsvc.Options{Tracer: tracing})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := forms.Accounts.Create(context.Background(), "default"); err != nil {
		fmt.Println(err)
		return
	}
	for _, span := range exporter.GetSpans() { // in the order in which they end
		fmt.Println(span.Name)
	}
	// Output:
	// CreateAccount
	// Accounts.Create
}
