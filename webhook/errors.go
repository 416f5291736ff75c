package webhook

import (
	"errors"
	"net/http"
)

// The reasons for refusing a request. Functions may wrap them with more detail:
// ask with [errors.Is]. Their texts contain no secret, no signature and nothing
// of the body, so they may be logged and sent.
var (
	// ErrNoSecret means that there is nothing to verify with: no secret was
	// given, or one is empty, or the [Verifier] was not made by [NewVerifier].
	ErrNoSecret = errors.New("webhook: no secret")
	// ErrNoSignature means that the request has no signature header.
	ErrNoSignature = errors.New("webhook: no " + SignatureHeader + " header")
	// ErrMalformedSignature means that the signature header comes more than
	// once, or is not exactly 64 lowercase hexadecimal digits.
	ErrMalformedSignature = errors.New("webhook: malformed " + SignatureHeader + " header")
	// ErrMismatch means that no secret yields the signature: the secret is
	// another one, or the body is not the one that was signed.
	ErrMismatch = errors.New("webhook: signature does not match the body")
	// ErrTooLarge means that the body is longer than [Options.MaxBody].
	ErrTooLarge = errors.New("webhook: body is too large")
	// ErrContentEncoding means that the body is compressed. The service never
	// does that, and the signature covers the bytes before any coding.
	ErrContentEncoding = errors.New("webhook: Content-Encoding is not supported")
	// ErrMethod means that the request is not a POST.
	ErrMethod = errors.New("webhook: method is not POST")
	// ErrBody means that the body broke off, usually because the client left.
	ErrBody = errors.New("webhook: body cannot be read")
	// ErrMalformedEvent means that the body is not an event: not one JSON
	// object, without an event name, or with a known member of another type.
	ErrMalformedEvent = errors.New("webhook: body is not an event")
)

// Status returns the HTTP status that answers err, for receivers that call
// [Verifier.VerifyRequest] themselves. [Verifier.Handler] answers by it.
//
//   - nil: 200
//   - [ErrBody], [ErrMalformedEvent]: 400
//   - [ErrNoSignature], [ErrMalformedSignature], [ErrMismatch]: 401
//   - [ErrMethod]: 405
//   - [ErrTooLarge]: 413
//   - [ErrContentEncoding]: 415
//   - [ErrNoSecret] and every other error: 500
func Status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrBody), errors.Is(err, ErrMalformedEvent):
		return http.StatusBadRequest
	case errors.Is(err, ErrNoSignature), errors.Is(err, ErrMalformedSignature), errors.Is(err, ErrMismatch):
		return http.StatusUnauthorized
	case errors.Is(err, ErrMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrContentEncoding):
		return http.StatusUnsupportedMediaType
	default:
		return http.StatusInternalServerError
	}
}
