package formsvc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

type spanKey struct{}

func traceParent(number any) string { return fmt.Sprintf("00-%032x-%016x-01", number, number) }

// Events keep the span of the operation that raised them, for every operation.
func TestEventsKeepTheirTrace(t *testing.T) {
	w := newFileWorld(t, func(o *formsvc.Options) {
		o.TraceParent = func(ctx context.Context) string { return traceParent(ctx.Value(spanKey{})) }
	})
	svc, c := w.svc, w.campaign()
	ctx := context.WithValue(t.Context(), spanKey{}, 7)
	hook := w.hook()
	r, err := svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: ada()})
	patch := formsvc.ResponsePatch{Status: new("completed"), FirstName: new("Augusta")}
	test, err2 := svc.Webhooks.Test(ctx, hookKey(&hook))
	wantError(t, errors.Join(
		err, err2, failure(svc.Responses.Update(ctx, r.Key(), patch)),
		failure(svc.Files.Upload(ctx, r.Key(), formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("a")})),
		failure(svc.Signatures.Create(ctx, r.Key(), formsvc.SignatureInput{Signer: ada()})),
		svc.Responses.Delete(ctx, r.Key(), nil),
	), nil)
	events := w.store.take()
	if n := len(events); n != 1+3+1+1+1 {
		t.Errorf("%d events: %q", n, eventTypes(events))
	}
	tested := must(svc.Events.Get(ctx, w.account, test.EventID))
	for _, e := range append(events, tested) {
		equal(t, e.TraceParent, traceParent(7), "%s keeps %q", e.Type)
	}
}

// A traceparent that a tracer passes on unchecked from a client isn't stored unless it is valid.
func TestOnlyValidTraceParentsAreKept(t *testing.T) {
	var parent string
	w := newWorld(t, func(o *formsvc.Options) { o.TraceParent = func(context.Context) string { return parent } })
	c := w.campaign()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]string{
		good: good,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"x": "", "ada@example.com": "", strings.ToUpper(good): "", good + "-x": "", " " + good: "", good[1:] + "0": "",
		"01" + good[2:]: "", "ff" + good[2:]: "", strings.Replace(good, "-", "_", 1): "", good[:54] + "\x00": "", good[:54] + "g": "",
		strings.Repeat("0", 10_000): "",
	} {
		parent = text
		w.submitted(&c)
		events := w.store.take()
		equal(t, events[0].TraceParent, want, "%q is kept as %q", text)
		if strings.Contains(string(events[0].Payload), "4bf92f3577b34da6") {
			t.Errorf("the payload has the trace: %s", events[0].Payload)
		}
	}
}
