package formsvc

import "context"

// A Tracer creates spans for the operations of a [Service]; package otelformsvc has one for
// OpenTelemetry. Its methods are called concurrently and during every request, so they must not
// block.
type Tracer interface {
	// Start begins a span of an operation, such as "Responses.Create", as a child of the span in
	// ctx. It returns the context for the operation, and a function that ends the span; that
	// function is called once, with the operation's error.
	Start(ctx context.Context, operation string) (context.Context, func(error))
	// TraceParent returns the span in ctx as the header traceparent of W3C Trace Context (version
	// 00) has it, or "" when there is none. It is stored with the events of the operation; texts of
	// another form are ignored.
	TraceParent(ctx context.Context) string
}

// span begins the span of an operation and replaces its context. Every exported method that takes a
// context, except [Service.Run] and [Events.Follow], begins with
//
//	defer core.span(&ctx, "Noun.Verb").end(&err)
func (c *core) span(ctx *context.Context, operation string) span {
	if c.tracer == nil {
		return span{}
	}
	traced, done := c.tracer.Start(*ctx, operation)
	*ctx = traced
	return span{done}
}

// A span is a started span; the zero span does nothing.
type span struct{ done func(error) }

func (s span) end(err *error) {
	if s.done != nil {
		s.done(*err)
	}
}

// traceParent returns [Event.TraceParent] for events that are raised in ctx.
func (c *core) traceParent(ctx context.Context) string {
	if c.tracer == nil {
		return ""
	}
	if parent := c.tracer.TraceParent(ctx); isTraceParent(parent) {
		return parent
	}
	return ""
}

// isTraceParent reports whether s has the form of version 00 of W3C Trace Context: the
// version, 32 digits of the trace, 16 of the span, neither all zero, and 2 of flags.
func isTraceParent(s string) bool {
	const form = "00-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff"
	if len(s) != len(form) {
		return false
	}
	trace, parent := false, false
	for i := range len(form) {
		c := s[i]
		switch form[i] {
		case '0', '-':
			if c != form[i] {
				return false
			}
			continue
		case 't':
			trace = trace || c != '0'
		case 's':
			parent = parent || c != '0'
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return trace && parent
}
