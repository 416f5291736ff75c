package otelformsvc_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/formsvc/toolkit/formsvc/otelformsvc"
)

// TestMain checks that no goroutines are left running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record returns a Tracing and the recorder of its ended spans.
func record(_ testing.TB) (*otelformsvc.Tracing, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	return otelformsvc.New(&otelformsvc.Options{TracerProvider: provider}), spans
}

// named returns the only span with that name.
func named(t *testing.T, spans []sdktrace.ReadOnlySpan, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found sdktrace.ReadOnlySpan
	for _, s := range spans {
		if s.Name() != name {
			continue
		}
		if found != nil {
			t.Errorf("several spans are named %q", name)
		}
		found = s
	}
	if found == nil {
		t.Fatalf("no span is named %q, but %q", name, names(spans))
	}
	return found
}

func names(spans []sdktrace.ReadOnlySpan) (list []string) {
	for _, s := range spans {
		list = append(list, s.Name())
	}
	return list
}

// attributes returns the attributes of a span as text.
func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	list := make(map[string]string)
	for _, a := range s.Attributes() {
		list[string(a.Key)] = a.Value.String()
	}
	return list
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}
