package formsvc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
)

// spans is a Tracer that records its calls. The traceparent of a span contains its number.
type spans struct {
	parent string // what TraceParent returns instead of the span's; "" for the span's

	mu    sync.Mutex
	names []string
	ended map[string]error
}

type spanKey struct{}

func (s *spans) Start(ctx context.Context, operation string) (context.Context, func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, operation)
	return context.WithValue(ctx, spanKey{}, len(s.names)), func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, twice := s.ended[operation]; twice {
			err = fmt.Errorf("%s ended twice", operation)
		}
		s.ended[operation] = err
	}
}

func (s *spans) TraceParent(ctx context.Context) string {
	if s.parent != "" {
		return s.parent
	}
	return traceParent(ctx.Value(spanKey{}))
}

func traceParent(number any) string { return fmt.Sprintf("00-%032x-%016x-01", number, number) }

// take returns the spans since the last take, in the order of their start, and their errors.
func (s *spans) take() ([]string, map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, ended := s.names, s.ended
	s.names, s.ended = nil, make(map[string]error)
	return names, ended
}

// tracedWorld is a service with a tracer, an account and a campaign.
func tracedWorld(t *testing.T) (svc *formsvc.Service, s *spans, c formsvc.Campaign, queue *memory.Store) {
	t.Helper()
	s = new(spans)
	s.take()
	store := memory.New()
	svc, err := formsvc.New(store, &formsvc.Options{Tracer: s, Blobs: memblob.New()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := svc.Accounts.Create(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	c, err = svc.Campaigns.Create(t.Context(), a.ID, formsvc.CampaignInput{Title: "Summer grant"})
	if err != nil {
		t.Fatal(err)
	}
	s.take()
	return svc, s, c, store
}

// Every exported method that takes a context runs in a span with its name, which ends with its
// error.
func TestEveryOperationHasASpan(t *testing.T) {
	svc, s, c, _ := tracedWorld(t)
	export, err := svc.Responses.Export(t.Context(), formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID})
	if err != nil {
		t.Fatal(err)
	}
	untraced := map[string]bool{"Service.Run": true, "Events.Follow": true} // they last as long as the program
	of := []reflect.Value{reflect.ValueOf(svc), reflect.ValueOf(export)}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[formsvc.Service]()) {
		if field.IsExported() {
			of = append(of, reflect.ValueOf(svc).Elem().FieldByIndex(field.Index))
		}
	}
	operations := 0
	for _, v := range of {
		for i := range v.NumMethod() {
			name := reflect.Indirect(v).Type().Name() + "." + v.Type().Method(i).Name
			method := v.Method(i)
			if method.Type().NumIn() == 0 || method.Type().In(0) != reflect.TypeFor[context.Context]() || untraced[name] {
				continue
			}
			operations++
			s.take()
			result := callWithNothing(t.Context(), method)
			names, ended := s.take()
			got, ok := ended[name]
			if !ok || names[0] != name || len(names) != len(ended) {
				t.Errorf("%s: spans %v, of which ended %v", name, names, ended)
			}
			if (got == nil) != (result == nil) || !errors.Is(got, result) {
				t.Errorf("%s: its span ended with %v, it returned %v", name, got, result)
			}
		}
	}
	if operations < 50 {
		t.Errorf("only %d operations were found", operations)
	}
}

// callWithNothing calls a method with zero values and returns its error; nil if it has none or
// panics, as some do with zero values.
func callWithNothing(ctx context.Context, method reflect.Value) (err error) {
	defer func() { _ = recover() }()
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < method.Type().NumIn(); i++ {
		args = append(args, reflect.Zero(method.Type().In(i)))
	}
	results := method.Call(args)
	last := results[len(results)-1]
	if last.Kind() == reflect.Func { // an iterator
		for range last.Seq2() {
		}
		return nil
	}
	err, _ = last.Interface().(error)
	return err
}

// Events keep the span of the operation that raised them, for every operation.
func TestEventsKeepTheirTrace(t *testing.T) {
	svc, s, c, queue := tracedWorld(t)
	ctx := t.Context()
	hook, _, err := svc.Webhooks.Create(ctx, c.AccountID, formsvc.WebhookInput{URL: "https://example.com", Events: webhook.EventTypes()})
	if err != nil {
		t.Fatal(err)
	}
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
			_, err := svc.Responses.Update(ctx, responseKey(&r), formsvc.ResponsePatch{Status: &status, FirstName: &name})
			return err
		},
		"Files.Upload": func() error {
			_, err := svc.Files.Upload(ctx, responseKey(&r), formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("a")})
			return err
		},
		"Signatures.Create": func() error {
			_, err := svc.Signatures.Create(ctx, responseKey(&r), formsvc.SignatureInput{Signer: ada()})
			return err
		},
		"Webhooks.Test": func() error {
			_, err := svc.Webhooks.Test(ctx, hookKey(&hook))
			return err
		},
	} {
		before := waiting(t, svc, &hook)
		s.take()
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
			// The first span of each operation is its own.
			if got := payloads[string(id)].TraceParent; got != traceParent(1) {
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
	svc, s, c, _ := tracedWorld(t)
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for parent, want := range map[string]string{
		good: good,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"x": "", "ada@example.com": "", strings.ToUpper(good): "", good + "-x": "", " " + good: "", good[1:] + "0": "",
		"01" + good[2:]: "", "ff" + good[2:]: "", strings.Replace(good, "-", "_", 1): "", good[:54] + "\x00": "", good[:54] + "g": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		strings.Repeat("0", 10_000):                               "",
	} {
		s.parent = parent
		r, err := svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: ada()})
		if err != nil {
			t.Fatal(err)
		}
		events, err := svc.Events.About(t.Context(), responseKey(&r), 10)
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		if events[0].TraceParent != want {
			t.Errorf("%q is kept as %q", parent, events[0].TraceParent)
		}
		if strings.Contains(string(events[0].Payload), "4bf92f3577b34da6") {
			t.Errorf("the payload has the trace: %s", events[0].Payload)
		}
	}
}
