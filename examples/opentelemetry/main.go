// Command opentelemetry submits a response, delivers its webhook, and prints the trace
// that holds both.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/otelformsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func main() {
	exporter := tracetest.NewInMemoryExporter() // yours sends to a collector, as otlptracehttp.New does
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("the receiver got traceparent:", r.Header.Get("traceparent"))
	}))
	if err := run(context.Background(), "traced.db", exporter, receiver.URL); err != nil {
		log.Fatal(err)
	}
	show(exporter.GetSpans(), trace.SpanID{}, "")
}

// run serves one request and delivers the webhook that follows, with spans of both.
func run(ctx context.Context, path string, exporter sdktrace.SpanExporter, receiver string) (err error) {
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)) // yours has WithBatcher, and Shutdown in the end
	tracing := otelformsvc.New(&otelformsvc.Options{TracerProvider: provider})
	forms, formsErr := formsvc.New(store, &formsvc.Options{TraceParent: tracing.TraceParent})
	api, apiErr := httpx.New(forms, nil)
	// The transport allows a receiver on this machine; the default allows public addresses only.
	engine, engineErr := delivery.New(store, &delivery.Options{Tracer: tracing, Transport: http.DefaultTransport})
	quiet, quietErr := formsvc.New(store, nil) // for calls that should not be traced
	if err := errors.Join(formsErr, apiErr, engineErr, quietErr); err != nil {
		return err
	}
	account, key, accountErr := quiet.Accounts.CreateWithKey(ctx, rand.Text(), formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	campaign, campaignErr := quiet.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Survey"})
	_, _, hookErr := quiet.Webhooks.Create(ctx, account.ID, formsvc.WebhookInput{URL: receiver, Events: webhook.EventTypes()})
	if err := errors.Join(accountErr, campaignErr, hookErr); err != nil {
		return err
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/forms/v1/campaigns/"+string(campaign.ID)+"/responses",
		strings.NewReader(`{"user":{"email":"ada@example.com"},"responses":{}}`))
	r.Header = http.Header{"Authorization": {"Bearer " + key.Value}, "Content-Type": {"application/json"}}
	http.StripPrefix("/forms", tracing.Handler(api)).ServeHTTP(httptest.NewRecorder(), r)
	_, err = engine.RunOnce(ctx)
	return err
}

// show prints the children of a span, and theirs.
func show(spans tracetest.SpanStubs, parent trace.SpanID, indent string) {
	for _, s := range spans {
		if s.Parent.SpanID() == parent {
			fmt.Printf("%s%s (%v)\n", indent, s.Name, s.EndTime.Sub(s.StartTime))
			show(spans, s.SpanContext.SpanID(), indent+"  ")
		}
	}
}
