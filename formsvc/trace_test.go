package formsvc_test

import (
	"context"
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
	svc, c, queue := w.svc, w.campaign(), w.queue()
	ctx := context.WithValue(t.Context(), spanKey{}, 7)
	hook := w.hook()
	r, err := svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: ada()})
	if err != nil {
		t.Fatal(err)
	}
	status, name := "completed", "Augusta"
	for operation, do := range map[string]func() error{
		"Responses.Create": func() error {
			_, err := svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: ada()})
			return err
		},
		"Responses.Update": func() error {
			_, err := svc.Responses.Update(ctx, r.Key(), formsvc.ResponsePatch{Status: &status, FirstName: &name})
			return err
		},
		"Files.Upload": func() error {
			_, err := svc.Files.Upload(ctx, r.Key(), formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("a")})
			return err
		},
		"Signatures.Create": func() error {
			_, err := svc.Signatures.Create(ctx, r.Key(), formsvc.SignatureInput{Signer: ada()})
			return err
		},
		"Webhooks.Test": func() error {
			_, err := svc.Webhooks.Test(ctx, hookKey(&hook))
			return err
		},
	} {
		before := waiting(t, svc, &hook)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		raised := 0
		for id := range waiting(t, svc, &hook) {
			if before[id] {
				continue
			}
			raised++
			payloads, err := queue.Payloads(ctx, []string{string(id)})
			if err != nil {
				t.Fatal(err)
			}
			if got := payloads[string(id)].TraceParent; got != traceParent(7) {
				t.Errorf("%s: its event keeps %q", operation, got)
			}
		}
		if want := map[string]int{"Responses.Update": 3}[operation]; raised != max(want, 1) {
			t.Errorf("%s raised %d events", operation, raised)
		}
	}
}

// waiting returns the events for which a webhook has deliveries.
func waiting(t *testing.T, svc *formsvc.Service, hook *formsvc.Webhook) map[formsvc.ID]bool {
	t.Helper()
	page, err := svc.Deliveries.List(t.Context(), formsvc.DeliveryQuery{AccountID: hook.AccountID, WebhookID: hook.ID})
	if err != nil {
		t.Fatal(err)
	}
	events := make(map[formsvc.ID]bool)
	for _, d := range page.Items {
		events[d.EventID] = true
	}
	return events
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
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		strings.Repeat("0", 10_000):                               "",
	} {
		parent = text
		w.submitted(&c)
		events := w.store.take()
		if events[0].TraceParent != want {
			t.Errorf("%q is kept as %q", text, events[0].TraceParent)
		}
		if strings.Contains(string(events[0].Payload), "4bf92f3577b34da6") {
			t.Errorf("the payload has the trace: %s", events[0].Payload)
		}
	}
}
