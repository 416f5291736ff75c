package webhook

import (
	"errors"
	"net/http"
)

// The reasons for refusing a request. Functions may wrap them with more detail: test for them with
// [errors.Is]. Their texts contain no secret, no signature and nothing of the body, so they may be
// logged. Except for [ErrDeduper] and [ErrNotHandled], they may be sent to the client.
var (
	// ErrNoSecret means that there is no secret to verify with: none was given, one is empty, or
	// the [Verifier] wasn't created by [NewVerifier].
	ErrNoSecret = errors.New("webhook: no secret")
	// ErrNoSignature means that the request has no signature header, or, with
	// [Options.Tolerance], not all headers of Standard Webhooks.
	ErrNoSignature = errors.New("webhook: missing signature header")
	// ErrMalformedSignature means that such a header occurs more than once or is malformed: for
	// example, the signature isn't exactly 64 lowercase hexadecimal digits.
	ErrMalformedSignature = errors.New("webhook: malformed signature header")
	// ErrMismatch means that no secret yields the signature: either the secret or the body differs
	// from what was signed.
	ErrMismatch = errors.New("webhook: signature does not match the body")
	// ErrTooOld means that the request is authentic but was sent longer ago
	// than [Options.Tolerance]: it is replayed, or a clock is wrong.
	ErrTooOld = errors.New("webhook: sent too long ago")
	// ErrTooNew means that the request is authentic but was sent further in the
	// future than [Options.Tolerance]: a clock is wrong.
	ErrTooNew = errors.New("webhook: sent in the future")
	// ErrBusy means that the event is being handled already, according to [Options.Deduper].
	ErrBusy = errors.New("webhook: event is being handled")
	// ErrDeduper means that [Options.Deduper] failed. The error also wraps the reason, whose text
	// can name your database: log it, but don't send it.
	ErrDeduper = errors.New("webhook: deduper failed")
	// ErrNotHandled means that the function given to [Verifier.EventHandler] failed. The error also
	// wraps that function's error: log it, but don't send it.
	ErrNotHandled = errors.New("webhook: event was not handled")
	// ErrTooLarge means that the body is longer than [Options.MaxBody].
	ErrTooLarge = errors.New("webhook: body is too large")
	// ErrContentEncoding means that the body is compressed. The service never
	// does that, and the signature covers the bytes before any coding.
	ErrContentEncoding = errors.New("webhook: Content-Encoding is not supported")
	// ErrMethod means that the request is not a POST.
	ErrMethod = errors.New("webhook: method is not POST")
	// ErrBody means that the body ended early, usually because the client disconnected.
	ErrBody = errors.New("webhook: body cannot be read")
	// ErrMalformedEvent means that the body isn't an event: it isn't one JSON object, has no event
	// name, or has a known field of another type.
	ErrMalformedEvent = errors.New("webhook: body is not an event")
)

// Status returns the HTTP status for err, for receivers that call [Verifier.VerifyRequest]
// themselves. [Verifier.Handler] uses it. It is 200 for nil, and 500 for [ErrNoSecret], [ErrDeduper],
// [ErrNotHandled] and every error of another package.
func Status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrDeduper), errors.Is(err, ErrNotHandled):
		// Whatever else err wraps says nothing about the request.
		return http.StatusInternalServerError
	case errors.Is(err, ErrBody), errors.Is(err, ErrMalformedEvent):
		return http.StatusBadRequest
	case errors.Is(err, ErrNoSignature), errors.Is(err, ErrMalformedSignature), errors.Is(err, ErrMismatch),
		errors.Is(err, ErrTooOld), errors.Is(err, ErrTooNew):
		return http.StatusUnauthorized
	case errors.Is(err, ErrMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrContentEncoding):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, ErrBusy):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
