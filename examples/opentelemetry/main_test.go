package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// One request makes one trace, of the API and the delivery. The
// receiver can continue it.
func TestOneTrace(t *testing.T) {
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("traceparent")
	}))
	defer receiver.Close()
	exporter := tracetest.NewInMemoryExporter()
	if err := run(t.Context(), filepath.Join(t.TempDir(), "traced.db"), exporter, receiver.URL); err != nil {
		t.Fatal(err)
	}
	spans := make(map[string]tracetest.SpanStub)
	for _, s := range exporter.GetSpans() {
		spans[s.Name] = s
	}
	const request, attempt = "POST /v1/campaigns/{uuid}/responses", "POST webhook"
	trace := spans[request].SpanContext.TraceID()
	if !trace.IsValid() || spans[request].Parent.IsValid() {
		t.Fatalf("no trace begins with the request: %v", spans)
	}
	if spans[attempt].Parent.SpanID() != spans[request].SpanContext.SpanID() {
		t.Errorf("%s is no child of %s", attempt, request)
	}
	for name, s := range spans {
		if s.SpanContext.TraceID() != trace {
			t.Errorf("%s is in another trace", name)
		}
	}
	if len(got) != 1 {
		t.Fatalf("%d requests arrived", len(got))
	}
	if traceparent, want := <-got, "00-"+trace.String()+"-"+spans[attempt].SpanContext.SpanID().String()+"-01"; traceparent != want {
		t.Errorf("the receiver got %q, want %q", traceparent, want)
	}
}
