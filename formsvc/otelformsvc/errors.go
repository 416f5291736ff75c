package otelformsvc

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/formsvc/toolkit/formsvc"
)

// end ends a span with the class of an error, without its text: a driver's text may contain stored
// data.
func end(span trace.Span, err error) {
	defer span.End()
	if err == nil || !span.IsRecording() {
		return
	}
	class, fault := classify(err)
	span.SetAttributes(semconv.ErrorTypeKey.String(class))
	if fault {
		span.SetStatus(codes.Error, "")
	}
}

// classify returns the class of an error, and whether it is a fault rather than an expected error
// of the caller.
func classify(err error) (class string, fault bool) {
	for _, known := range faults() {
		if errors.Is(err, known.err) {
			return known.class, true
		}
	}
	for _, known := range refusals() {
		if errors.Is(err, known.err) {
			return known.class, false
		}
	}
	return semconv.ErrorTypeOther.Value.AsString(), true
}

type class struct {
	err   error
	class string
}

// faults come first: some wrap an expected error that caused them.
func faults() []class {
	return []class{
		{formsvc.ErrUnknownOutcome, "unknown_outcome"}, {formsvc.ErrNoSpace, "no_space"},
		{formsvc.ErrStoreClosed, "store_closed"}, {formsvc.ErrMoved, "moved"}, {formsvc.ErrUnavailable, "unavailable"},
		{formsvc.ErrCorrupt, "corrupt"}, {formsvc.ErrOtherBlobs, "other_blobs"}, {context.DeadlineExceeded, "timeout"},
	}
}

func refusals() []class {
	return []class{
		{formsvc.ErrNotFound, "not_found"}, {formsvc.ErrConflict, "conflict"}, {formsvc.ErrStale, "stale"},
		{formsvc.ErrInvalid, "invalid"}, {formsvc.ErrCampaignClosed, "campaign_closed"}, {formsvc.ErrTransition, "transition"},
		{formsvc.ErrUnauthenticated, "unauthenticated"}, {formsvc.ErrLimit, "limit"}, {formsvc.ErrQuota, "quota"},
		{formsvc.ErrRepeated, "repeated"}, {formsvc.ErrInFlight, "in_flight"}, {formsvc.ErrMismatch, "mismatch"},
		{formsvc.ErrTooLarge, "too_large"}, {formsvc.ErrDigest, "digest"}, {formsvc.ErrManyOrphans, "many_orphans"},
		{errors.ErrUnsupported, "unsupported"},
		{context.Canceled, "canceled"},
	}
}
