package otelformsvc

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Handler returns a handler that serves each request in a span, which is named after the
// route: the Pattern that next sets of the request, as httpx.Handler and [http.ServeMux] do.
// They set it of the request that they get, so nothing between them and this handler may
// copy the request; [http.StripPrefix] belongs around it.
//
// It adds nothing to the answer. What next can do with its [http.ResponseWriter] beyond
// writing it does through [http.ResponseController].
func (t *Tracing) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		method, name := methodOf(r)
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(method, schemeOf(r)))
		a := &answer{ResponseWriter: w}
		r = r.WithContext(ctx)
		served := false
		defer func() { // also when the handler panics to cut its answer off
			endRequest(span, name, routeOf(r.Pattern), a.status, served)
		}()
		next.ServeHTTP(a, r)
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
		status = http.StatusOK // as net/http then does
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

// methodOf returns the method of a request, and the name that its span begins with. A
// method that there is none of would be a name that the client chose.
func methodOf(r *http.Request) (method attribute.KeyValue, name string) {
	if slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}, r.Method) {
		return semconv.HTTPRequestMethodKey.String(r.Method), r.Method
	}
	return semconv.HTTPRequestMethodOther, "HTTP"
}

func schemeOf(r *http.Request) attribute.KeyValue {
	if r.TLS != nil {
		return semconv.URLScheme("https")
	}
	return semconv.URLScheme("http")
}

// routeOf returns the path of a pattern, which may have a method and a host before it.
func routeOf(pattern string) string {
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		return pattern[i:]
	}
	return ""
}

// An answer notes the status.
type answer struct {
	http.ResponseWriter

	status int // 0 until there is one
}

// WriteHeader notes the status, unless it is an interim one.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, with status 200 if there was none.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
