package otelformsvc_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/otelformsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// Trace a service: each request is a span. Package examples/opentelemetry adds webhooks.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // yours sends to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	tracing := otelformsvc.New(&otelformsvc.Options{TracerProvider: provider})

	forms, err := formsvc.New(memory.New(), &formsvc.Options{TraceParent: tracing.TraceParent})
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := httpx.New(forms, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	tracing.Handler(api).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/healthz", nil))
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// GET /healthz
}
