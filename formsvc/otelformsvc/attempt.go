package otelformsvc

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// Attempt implements [delivery.Tracer].
func (t *Tracing) Attempt(
	ctx context.Context, s delivery.Sending, header http.Header,
) (context.Context, func(delivery.Outcome)) {
	// A span in ctx is around the engine and isn't the parent of an event's span.
	parent := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(
		context.Background(), propagation.MapCarrier{"traceparent": s.TraceParent}))
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), "POST webhook",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributesOf(&s)...))
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	return ctx, func(o delivery.Outcome) { endAttempt(span, &o) }
}

func attributesOf(s *delivery.Sending) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodPost,
		attribute.String("formsvc.webhook.id", s.Claim.Endpoint),
		attribute.String("formsvc.delivery.id", s.Claim.ID),
		attribute.String("formsvc.event.id", s.Claim.EventID),
		attribute.String("formsvc.event.type", s.Claim.Event),
	}
	if s.Number > 1 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(s.Number-1))
	}
	host, port, err := net.SplitHostPort(s.Host)
	if err != nil {
		return append(attributes, semconv.ServerAddress(s.Host))
	}
	attributes = append(attributes, semconv.ServerAddress(host))
	if n, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, semconv.ServerPort(n))
	}
	return attributes
}

func endAttempt(span trace.Span, o *delivery.Outcome) {
	defer span.End()
	result := map[delivery.Result]string{
		delivery.Delivered: "delivered", delivery.Postponed: "postponed", delivery.Failed: "failed", delivery.Released: "released",
	}[o.Result]
	span.SetAttributes(attribute.String("formsvc.delivery.result", cmp.Or(result, "unknown")))
	a := &o.Attempt
	if a.Status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(a.Status))
	}
	if a.Error == "" {
		return
	}
	class := a.Error
	if class == delivery.ClassStatus {
		class = strconv.Itoa(a.Status)
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(class))
	if o.Result != delivery.Released { // an attempt that a shutdown canceled is sent again
		span.SetStatus(codes.Error, "")
	}
}
