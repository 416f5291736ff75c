package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// VerifyRequest reads the body of r, up to [Options.MaxBody] bytes, verifies its signature and
// returns the delivery. w is the response to r; if the body is too large, it closes the connection.
// w may be nil.
//
// After the whole body has been read, r.Body yields it again from the start, even if the signature
// doesn't match.
//
// It fails with [ErrMethod], [ErrContentEncoding], [ErrTooLarge] or [ErrBody], or as
// [Verifier.Verify] does; [Status] returns the status to reply with. A request that declares a body
// over the limit, or has no well-formed signature, is refused before its body is read.
func (v *Verifier) VerifyRequest(w http.ResponseWriter, r *http.Request) (Delivery, error) {
	if err := v.checkHead(r); err != nil {
		return Delivery{}, err
	}
	body, err := v.readBody(w, r)
	if err != nil {
		return Delivery{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return v.Verify(body, r.Header)
}

// checkHead refuses what can be refused without the body.
func (v *Verifier) checkHead(r *http.Request) error {
	if err := v.ready(); err != nil {
		return err
	}
	if r.Method != http.MethodPost {
		return ErrMethod
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" {
			return ErrContentEncoding
		}
	}
	if err := v.checkLength(r.ContentLength); err != nil {
		return err
	}
	if _, err := signature(r.Header); err != nil {
		return err
	}
	if v.opts.Tolerance > 0 {
		_, err := parseStandard(r.Header)
		return err
	}
	return nil
}

// readBody returns the whole body.
func (v *Verifier) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	// Content-Length is only the client's claim: it must not size an allocation before any data
	// arrived.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, v.opts.MaxBody))
	if err == nil {
		return body, nil
	}
	// The limit may also come from an outer handler.
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, tooLarge.Limit)
	}
	return nil, fmt.Errorf("%w: %w", ErrBody, err)
}

// Handler returns a handler that passes authentic requests to next, with the [Delivery] in the
// request's context (see [FromContext]) and the body unread. It refuses every other request with
// the status of [Status] and the reason as plain text, after it has called [Options.OnReject]. The HTTP
// response of next goes to the service. Handler doesn't recover a panic of next.
//
// With [Options.Deduper], next is called only for events that weren't handled yet. A duplicate of a
// handled event gets 200. A duplicate of an event that is being handled gets 503 and Retry-After, so
// that the service retries in case handling fails. If the Deduper fails, the response is 500. The
// event counts as handled if next replies with 2xx, or returns without a status, for which net/http
// sends 200, while the client is still connected.
func (v *Verifier) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := v.VerifyRequest(w, r)
		if err != nil {
			v.reject(w, r, err)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), contextKey{}, d))
		if v.opts.Deduper == nil || d.EventID == "" {
			next.ServeHTTP(w, r)
			return
		}
		v.once(w, r, d.EventID, next)
	})
}

// EventHandler returns a handler that calls handle with the event of every authentic request,
// possibly several at once. handle gets the [Delivery] with [FromContext]; ctx ends when the
// service stops waiting. It should return nil for unknown types of events: the service may add some.
//
// If handle returns nil, the response is 200. If it returns an error, the response is 500, and
// [Options.OnReject] gets the error wrapped in [ErrNotHandled]; without it the error is lost. A signed
// body that isn't an event gets 400. Everything else works as in [Verifier.Handler].
func (v *Verifier) EventHandler(handle func(ctx context.Context, e Event) error) http.Handler {
	return v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := FromContext(r.Context())
		event, err := ParseEvent(d.Body)
		if err != nil {
			v.reject(w, r, err)
			return
		}
		if err := handle(r.Context(), event); err != nil {
			v.reject(w, r, fmt.Errorf("%w: %w", ErrNotHandled, err))
			return
		}
		w.WriteHeader(http.StatusOK)
	}))
}

// reject replies to a request that was refused with err.
func (v *Verifier) reject(w http.ResponseWriter, r *http.Request, err error) {
	if v != nil && v.opts.OnReject != nil {
		v.opts.OnReject(r, err)
	}
	status, text := Status(err), err.Error()
	for _, reason := range [...]error{ErrBody, ErrDeduper, ErrNotHandled} {
		if errors.Is(err, reason) {
			text = reason.Error() // the cause can contain anything, such as addresses or the name of the database
			break
		}
	}
	switch status {
	case http.StatusUnauthorized:
		// RFC 9110, section 15.5.2: a 401 has to name a challenge.
		w.Header().Set("WWW-Authenticate", `HMAC-SHA256 header="`+SignatureHeader+`"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusUnsupportedMediaType:
		// RFC 9110, section 15.5.16: tells the client that the coding is the problem.
		w.Header().Set("Accept-Encoding", "identity")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, text, status)
}

// contextKey is the key of the Delivery in a context.
type contextKey struct{}

// FromContext returns the Delivery that [Verifier.Handler] put into the request's context. ok is
// false if the request didn't pass through it.
func FromContext(ctx context.Context) (d Delivery, ok bool) {
	d, ok = ctx.Value(contextKey{}).(Delivery)
	return d, ok
}
