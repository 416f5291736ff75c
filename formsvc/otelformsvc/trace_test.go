package otelformsvc_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A node is one program: a service, its API, its engine, and a TracerProvider.
type node struct {
	t      *testing.T
	forms  *formsvc.Service
	api    http.Handler
	engine *delivery.Engine
	spans  *tracetest.SpanRecorder
	key    string
}

func newNode(t *testing.T, store *memory.Store) *node {
	t.Helper()
	tracing, spans := record(t)
	forms := must(formsvc.New(store, &formsvc.Options{TraceParent: tracing.TraceParent, Blobs: memblob.New()}))
	api := must(httpx.New(forms, nil))
	pages := must(console.New(forms, api, nil))
	engine := must(delivery.New(store, &delivery.Options{
		Tracer: tracing, Control: func(string, string, syscall.RawConn) error { return nil },
	}))
	mux := http.NewServeMux()
	mux.Handle("/", tracing.Handler(api))
	mux.Handle("/console/", http.StripPrefix("/console", tracing.Handler(pages)))
	return &node{t: t, forms: forms, api: mux, engine: engine, spans: spans}
}

// tenant creates an account, with a key for the requests of do, and a campaign.
func (n *node) tenant() (formsvc.Account, formsvc.Campaign) {
	n.t.Helper()
	a, key, err := n.forms.Accounts.CreateWithKey(n.t.Context(), "default",
		formsvc.KeyInput{Name: "key", Permissions: formsvc.AllPermissions()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.key = key.Value
	return a, must(n.forms.Campaigns.Create(n.t.Context(), a.ID, formsvc.CampaignInput{Title: "Summer grant"}))
}

// do sends a request with headers: names and values alternate.
func (n *node) do(want int, method, path, body string, header ...string) *httptest.ResponseRecorder {
	n.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+n.key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	n.api.ServeHTTP(w, r)
	if w.Code != want {
		n.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w
}

// A receiver replies with its status and records the headers of requests.
type receiver struct {
	*httptest.Server
	status int

	mu  sync.Mutex
	got []http.Header
}

func newReceiver(t *testing.T, status int) *receiver {
	r := &receiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, _ = io.Copy(io.Discard, req.Body)
		r.got = append(r.got, req.Header)
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// One program accepts a response and another one delivers it, with another TracerProvider: the
// trace continues through the database.
func TestTraceAcrossProcesses(t *testing.T) {
	t.Parallel()
	store, r := memory.New(), newReceiver(t, http.StatusServiceUnavailable)
	front, back := newNode(t, store), newNode(t, store)
	account, campaign := front.tenant()
	hook, _, err := front.forms.Webhooks.Create(t.Context(), account.ID, formsvc.WebhookInput{
		URL: r.URL + "/hook", Events: webhook.EventTypes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	front.spans.Reset()
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	front.do(201, "POST", "/v1/campaigns/"+string(campaign.ID)+"/responses", `{"user":{"email":"ada@example.com"},"responses":{}}`,
		"traceparent", "00-"+trace+"-"+parent+"-01", "tracestate", "vendor=canary", "baggage", "who=canary")
	if n, err := back.engine.RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}

	request := named(t, front.spans.Ended(), "POST /v1/campaigns/{uuid}/responses")
	attempt := named(t, back.spans.Ended(), "POST webhook")
	if got := request.Parent(); got.TraceID().String() != trace || got.SpanID().String() != parent || !got.IsRemote() {
		t.Errorf("the request is a child of %v", got)
	}
	if attempt.Parent().SpanID() != request.SpanContext().SpanID() || attempt.SpanContext().TraceID().String() != trace {
		t.Errorf("%s is no child of %s", attempt.Name(), request.Name())
	}
	got, address := attributes(attempt), strings.Split(r.Listener.Addr().String(), ":")
	for name, want := range map[string]string{
		"http.request.method": "POST", "server.address": address[0], "server.port": address[1],
		"http.response.status_code": "503", "error.type": "503", "formsvc.delivery.result": "postponed",
		"formsvc.webhook.id": string(hook.ID), "formsvc.event.type": "response.created", "http.request.resend_count": "",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(r.got) != 1 {
		t.Fatalf("%d requests arrived", len(r.got))
	}
	if got, want := r.got[0].Get("traceparent"), "00-"+trace+"-"+attempt.SpanContext().SpanID().String()+"-01"; got != want {
		t.Errorf("the receiver got traceparent %q, want %q", got, want)
	}
	if h := fmt.Sprint(r.got[0]); strings.Contains(h, "canary") {
		t.Errorf("the receiver got what the client sent: %s", h)
	}
}

// An attempt for an untraced event starts a new trace, independent of spans around the engine.
func TestAttemptWithoutATrace(t *testing.T) {
	t.Parallel()
	tracing, spans := record(t)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	ctx, outer := provider.Tracer("").Start(t.Context(), "around the engine")
	header := make(http.Header)
	_, ended := tracing.Attempt(ctx, delivery.Sending{Number: 3, Host: "example.com"}, header)
	ended(delivery.Outcome{Result: delivery.Released, Attempt: delivery.Attempt{Error: delivery.ClassCanceled}})
	outer.End()
	s, around := named(t, spans.Ended(), "POST webhook"), named(t, spans.Ended(), "around the engine")
	if s.Parent().IsValid() || s.SpanContext().TraceID() == around.SpanContext().TraceID() {
		t.Errorf("the attempt is a child of %v", s.Parent())
	}
	if got := header.Get("traceparent"); !strings.Contains(got, s.SpanContext().TraceID().String()) {
		t.Errorf("traceparent %q", got)
	}
	a := attributes(s)
	if a["server.address"] != "example.com" || a["server.port"] != "" || a["http.request.resend_count"] != "2" ||
		a["error.type"] != "canceled" || a["formsvc.delivery.result"] != "released" || s.Status().Description != "" {
		t.Errorf("attributes %v, status %v", a, s.Status())
	}
}

// No span contains personal data or secrets, however they entered the service.
func TestSpansContainNothingPrivate(t *testing.T) {
	t.Parallel()
	n, r := newNode(t, memory.New()), newReceiver(t, http.StatusInternalServerError)
	account, campaign := n.tenant()
	list := "/v1/campaigns/" + string(campaign.ID) + "/responses"
	n.do(201, "POST", "/v1/webhooks", `{"url":"`+r.URL+`/canary?token=canary","events":["response.created"],`+
		`"secret":"canary-canary-canary-canary-canary","headers":{"X-Token":"canary"}}`)
	one := n.do(201, "POST", list, `{"user":{"email":"canary@example.com","firstName":"canary","lastName":"canary"},`+
		`"responses":{"canary":{"value":["canary"]}}}`).Header().Get("Location")
	n.do(200, "PATCH", one, `{"user":{"lastName":"canary2"},"status":"canary"}`)
	n.do(201, "POST", one+"/comments", `{"body":"canary"}`)
	n.do(201, "POST", one+"/signatures", `{"signer":{"email":"canary@example.com"}}`)
	n.do(201, "POST", one+"/files", "canary", "Content-Type", "text/plain", "Content-Disposition", `attachment; filename="canary.txt"`)
	n.do(200, "GET", list+"?email=canary@example.com", "", "X-Request-Id", "canary", "User-Agent", "canary", "X-Forwarded-For", "canary")
	n.do(422, "POST", list, `{"user":{"email":"canary"},"responses":{}}`)
	n.do(404, "GET", "/v1/campaigns/canary", "")
	n.do(404, "CANARY", "/canary", "", "traceparent", "canary")
	link, _, err := n.forms.Sessions.NewLink(t.Context(), account.ID)
	if err != nil {
		t.Fatal(err)
	}
	n.do(200, "GET", "/console/sign-in/"+link, "")
	must(n.forms.Accounts.ErasePerson(t.Context(), account.ID, "canary@example.com"))
	n.do(201, "POST", list, `{"user":{"email":"canary@example.com"},"responses":{}}`)
	if sent, err := n.engine.RunOnce(t.Context()); sent == 0 || err != nil {
		t.Fatal(sent, err)
	}
	spans := n.spans.Ended()
	for _, want := range []string{"GET /sign-in/{token}", "POST webhook", "POST /v1/campaigns/{uuid}/responses/{response_uuid}/files"} {
		if !slices.Contains(names(spans), want) {
			t.Errorf("no span %q among %q", want, names(spans))
		}
	}
	for _, s := range spans {
		text := fmt.Sprintf("%s %v %v %+v %v %s", s.Name(), attributes(s), s.Events(), s.Status(), s.Links(), s.SpanContext().TraceState())
		for _, secret := range []string{"canary", "CANARY", n.key, link} {
			if strings.Contains(text, secret) {
				t.Errorf("a span has what nobody may see: %s", text)
			}
		}
	}
}
