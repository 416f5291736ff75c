// Package otelformsvc traces a forms service with OpenTelemetry: a request and every webhook delivery
// attempt that follows, in one trace. No other package of the module imports OpenTelemetry.
//
//	tracing := otelformsvc.New(nil) // with the global TracerProvider
//	forms, err := formsvc.New(store, &formsvc.Options{TraceParent: tracing.TraceParent})
//	engine, err := delivery.New(store, &delivery.Options{Tracer: tracing})
//	api, err := httpx.New(forms, nil)
//	mux.Handle("/forms/", http.StripPrefix("/forms", tracing.Handler(api)))
//
// # The spans
//
//   - "POST /v1/campaigns/{uuid}/responses", kind server: a request, from [Tracing.Handler]. It
//     continues the trace of the request's header traceparent.
//   - "POST webhook", kind client: an attempt to deliver an event, possibly hours later and from another process. It is
//     a child of the request, or of another span of yours, that raised the event. The receiver gets it in the header
//     traceparent, and tracestate if a sampler sets one. Without one, each attempt begins a new trace.
//
// Names and attributes follow OpenTelemetry's semantic conventions for HTTP. Beside them there are formsvc.webhook.id,
// formsvc.delivery.id, formsvc.event.id, formsvc.event.type, and formsvc.delivery.result: "delivered", "postponed",
// "failed" or "released". error.type is the status of a response, or the class of a failed attempt, such as "timeout".
// A span has the status Error for HTTP statuses from 500, and for every failed attempt.
//
// # What spans never contain
//
// Data of respondents, keys, secrets and tokens, and texts that might contain them: error texts, paths
// and queries of requests (a sign-in link is a path), addresses of clients, and webhook URLs except the
// host. So url.path, url.full and client.address are left out, although the conventions ask for them.
// When you erase a person, there is nothing to erase in traces.
//
// # Trust
//
// A client that sends traceparent chooses its trace and, with a parent-based sampler, whether it is
// recorded. If you don't trust clients, give the TracerProvider a sampler that decides itself:
//
//	sdktrace.ParentBased(root, sdktrace.WithRemoteParentSampled(root))
//
// A client's tracestate and baggage are neither stored nor sent to webhooks. A receiver learns the
// identifiers of a trace and a span, and whether it is recorded; the headers aren't signed.
package otelformsvc
