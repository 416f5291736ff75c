// Package otelformsvc traces a forms service with OpenTelemetry: a request, the
// operations and the database calls that it leads to, and every attempt to tell a webhook
// of it, in one trace. Nothing else of the module imports OpenTelemetry.
//
//	tracing := otelformsvc.New(nil) // with the global TracerProvider
//	forms, err := formsvc.New(tracing.Store(store, &otelformsvc.StoreOptions{System: "sqlite"}),
//		&formsvc.Options{Tracer: tracing})
//	engine, err := delivery.New(store, &delivery.Options{Tracer: tracing})
//	api, err := httpx.New(forms, nil)
//	mux.Handle("/forms/", http.StripPrefix("/forms", tracing.Handler(api)))
//
// # The spans
//
//   - "POST /v1/campaigns/{uuid}/responses", kind server: a request, from [Tracing.Handler].
//     It goes on with the trace that the request names in its header traceparent.
//   - "Responses.Create", kind internal: an operation of package formsvc.
//   - "CreateResponse", kind client: a call of the store, from [Tracing.Store]. An export or
//     an erasure of millions makes thousands of them.
//   - "POST webhook", kind client: an attempt to deliver an event, also hours later and from
//     another process. It is a child of the operation that raised the event. The receiver
//     gets a header traceparent that names it, and tracestate if a sampler sets one. An event
//     that nobody traced begins a trace of its own with each attempt.
//
// Names and attributes follow OpenTelemetry's semantic conventions for HTTP and databases.
// What they have no name for:
//
//   - formsvc.webhook.id, formsvc.delivery.id, formsvc.event.id, formsvc.event.type
//   - formsvc.delivery.result: "delivered", "postponed", "failed" or "released"
//
// error.type is the class of an error, such as "not_found" for [formsvc.ErrNotFound], or
// "timeout". A span has the status Error when it is not the caller's doing: what httpx
// answers with 500 and above, and every attempt that failed.
//
// # What is in no span
//
// Data of respondents, keys, secrets, tokens and what might carry them: texts of errors,
// paths and queries of requests (a sign-in link is a path), addresses of clients and
// everything of a webhook's URL but its host. So url.path, url.full and client.address are
// left out, although the conventions want them. So erasing a person leaves nothing to erase
// in traces.
//
// # Trust
//
// A client that sends traceparent decides which trace it is in, and with the sampler that
// follows parents, whether it is recorded. Where clients are strangers, give the
// TracerProvider a sampler that decides itself:
//
//	sdktrace.ParentBased(root, sdktrace.WithRemoteParentSampled(root))
//
// Events keep traceparent alone: neither tracestate nor baggage of a client is stored or
// sent to webhooks. A receiver learns the identifiers of a trace and of a span, and whether
// it is recorded. No signature covers the two headers.
package otelformsvc
