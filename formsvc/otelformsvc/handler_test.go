package otelformsvc_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc/otelformsvc"
)

func TestHandler(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /things/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/silent", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("some"))
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/controlled", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	for _, c := range []struct{ method, path, name, method2, route, status, errorType string }{
		{"GET", "/things/1?email=ada@example.com", "GET /things/{id}", "GET", "/things/{id}", "204", ""},
		{"HEAD", "/things/1", "HEAD /things/{id}", "HEAD", "/things/{id}", "204", ""},
		{"GET", "/silent", "GET /silent", "GET", "/silent", "200", ""},
		{"GET", "/nothing", "GET", "GET", "", "404", ""},
		{"INVENTED", "/things/1", "HTTP", "_OTHER", "", "405", ""},
		{"POST", "/broken", "POST /broken", "POST", "/broken", "502", "502"},
		{"GET", "/cut", "GET /cut", "GET", "/cut", "200", "_OTHER"},
		{"GET", "/controlled", "GET /controlled", "GET", "/controlled", "418", ""},
	} {
		tracing, spans := record(t)
		func() {
			defer func() { _ = recover() }()
			tracing.Handler(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil))
		}()
		s := named(t, spans.Ended(), c.name)
		a := attributes(s)
		if a["http.request.method"] != c.method2 || a["http.route"] != c.route || a["http.response.status_code"] != c.status ||
			a["error.type"] != c.errorType || a["url.scheme"] != "http" || s.SpanKind() != oteltrace.SpanKindServer {
			t.Errorf("%s %s: a %s span with %v", c.method, c.path, s.SpanKind(), a)
		}
		if failed := s.Status().Code == codes.Error; failed != (c.errorType != "") {
			t.Errorf("%s %s: status %v", c.method, c.path, s.Status())
		}
	}
}

// The propagator decides whether and in which form traces are read from requests.
func TestPropagator(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracing := otelformsvc.New(&otelformsvc.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Propagator:     propagation.NewCompositeTextMapPropagator(), // reads nothing
	})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	tracing.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	if s := named(t, spans.Ended(), "GET"); s.Parent().IsValid() {
		t.Errorf("the request is a child of %v", s.Parent())
	}
}

// A request continues the trace of its traceparent; an invalid one starts a new trace.
func TestHandlerJoinsATrace(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := "00-" + trace + "-" + parent + "-01"
	for header, joins := range map[string]bool{
		good: true, "": false, "nonsense": false, good + strings.Repeat("0", 10_000): false, strings.Repeat("0", 1<<20): false,
		"00-" + trace + "-" + parent + "-zz": false, "00-" + strings.Repeat("0", 32) + "-" + parent + "-01": false, good + "\n": false,
	} {
		tracing, spans := record(t)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("traceparent", header)
		var kept string
		tracing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			kept = tracing.TraceParent(r.Context())
		})).ServeHTTP(httptest.NewRecorder(), r)
		s := named(t, spans.Ended(), "GET")
		if got := s.SpanContext().TraceID().String() == trace && s.Parent().SpanID().String() == parent; got != joins {
			t.Errorf("%.80q: joined: %t", header, got)
		}
		if want := "00-" + s.SpanContext().TraceID().String() + "-" + s.SpanContext().SpanID().String() + "-01"; kept != want {
			t.Errorf("%.80q: the traceparent within is %.80q, want %q", header, kept, want)
		}
	}
}
