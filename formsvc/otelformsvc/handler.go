package otelformsvc

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc/internal/recorder"
)

// Handler returns a handler that serves each request in a span. The span is named after the route:
// the Pattern that next sets in the request, as httpx.Handler and [http.ServeMux] do. Nothing
// between them and this handler may copy the request; put [http.StripPrefix] around this handler.
//
// It adds nothing to the response. For the optional methods of its [http.ResponseWriter], next must
// use [http.ResponseController].
func (t *Tracing) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method, name := methodOf(r)
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(method, semconv.URLScheme(scheme)))
		sent := &recorder.Writer{ResponseWriter: w}
		r = r.WithContext(ctx)
		served := false
		defer func() { // even if the handler panics to abort its response
			endRequest(span, name, routeOf(r.Pattern), sent.Status, served)
		}()
		next.ServeHTTP(sent, r)
		served = true
	})
}

func endRequest(span trace.Span, method, route string, status int, served bool) {
	defer span.End()
	if route != "" {
		span.SetName(method + " " + route)
		span.SetAttributes(semconv.HTTPRoute(route))
	}
	if status == 0 && served {
		status = http.StatusOK // the default of net/http
	}
	if status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	switch {
	case status >= http.StatusInternalServerError:
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
	case !served:
		span.SetAttributes(semconv.ErrorTypeOther)
	default:
		return
	}
	span.SetStatus(codes.Error, "")
}

// methodOf returns the method of a request, and the first word of its span's name. Unknown methods
// are replaced, so that clients can't choose names.
func methodOf(r *http.Request) (method attribute.KeyValue, name string) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return semconv.HTTPRequestMethodKey.String(r.Method), r.Method
	}
	return semconv.HTTPRequestMethodOther, "HTTP"
}

// routeOf returns the path of a pattern, which may have a method and a host before it.
func routeOf(pattern string) string {
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		return pattern[i:]
	}
	return ""
}
