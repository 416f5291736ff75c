package otelformsvc_test

import (
	"context"
	"maps"
	"reflect"
	"testing"

	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/otelformsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// Every method of the contract that calls the database has a span, including future ones.
func TestEveryCallOfAStoreHasASpan(t *testing.T) {
	tracing, spans := record(t)
	store := reflect.ValueOf(tracing.Store(memory.New(), &otelformsvc.StoreOptions{System: "memory", Roots: true}))
	contract := reflect.TypeFor[formsvc.Store]()
	for i := range contract.NumMethod() {
		method := contract.Method(i)
		if method.Type.NumIn() == 0 || method.Type.In(0) != reflect.TypeFor[context.Context]() {
			continue
		}
		spans.Reset()
		func() {
			defer func() { _ = recover() }() // some methods panic with zero arguments
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for j := 1; j < method.Type.NumIn(); j++ {
				args = append(args, reflect.Zero(method.Type.In(j)))
			}
			store.MethodByName(method.Name).Call(args)
		}()
		s := named(t, spans.Ended(), method.Name)
		want := map[string]string{"db.system.name": "memory", "db.operation.name": method.Name}
		got := attributes(s)
		delete(got, "error.type")
		if s.SpanKind() != oteltrace.SpanKindClient || !maps.Equal(got, want) {
			t.Errorf("%s: a %s span with %v, want %v", method.Name, s.SpanKind(), got, want)
		}
	}
}

// Calls outside a trace, such as those of Service.Run, start none by default.
func TestStoreCallsOutsideATraceHaveNoSpan(t *testing.T) {
	tracing, spans := record(t)
	store := tracing.Store(memory.New(), nil)
	_, _ = store.Accounts(t.Context())
	if got := spans.Ended(); len(got) != 0 {
		t.Errorf("spans %q", names(got))
	}
	ctx, end := tracing.Start(t.Context(), "outer")
	_, _ = store.Account(ctx, "nobody")
	end(nil)
	inner, outer := named(t, spans.Ended(), "Account"), named(t, spans.Ended(), "outer")
	if inner.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Error("the call of the store is no child of the operation")
	}
	if got := attributes(inner)["error.type"]; got != "not_found" || inner.Status().Code == codes.Error {
		t.Errorf("nobody there: error.type %q, status %v", got, inner.Status())
	}
}
