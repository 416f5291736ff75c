package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// VerifyRequest reads the body of r, at most [Options.MaxBody] bytes of it,
// checks its signature and returns what was delivered. w is the response that
// will answer r; a body that is too large makes it close the connection. w may
// be nil.
//
// Once the body has been read whole, r.Body yields it again from the start,
// also when the signature does not match.
//
// It fails with [ErrMethod], [ErrContentEncoding], [ErrTooLarge] or [ErrBody],
// or as [Verifier.Verify] does; [Status] gives the status to answer. A request
// that declares a body over the limit, or has no well-formed signature, is
// refused before its body is read.
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
	if v.tolerance > 0 {
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
	// Content-Length is the client's claim: it must not size an allocation
	// before anything came.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, v.maxBody))
	if err == nil {
		return body, nil
	}
	// The limit may also be one that an outer handler has set.
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, tooLarge.Limit)
	}
	return nil, fmt.Errorf("%w: %w", ErrBody, err)
}

// Handler returns a handler that passes authentic requests on to next, with the
// [Delivery] in the request's context (see [FromContext]) and the body unread.
// It answers every other request itself, with the status that [Status] gives
// and the reason as plain text, and calls [Options.OnReject] before.
//
// What next answers goes to the service: 2xx accepts the delivery, everything
// else has it sent again later. A panic of next is not caught here.
//
// With [Options.Deduper] next is called for events that are not handled yet. One
// that was handled is answered with 200, so that the service stops repeating it,
// and one that is just being handled with 503 and Retry-After, so that the
// service repeats it in case that fails. If the Deduper does not answer, neither
// handling nor dropping the event would be right: the answer is 500, and the
// service repeats it. The event counts as handled when next answers 2xx, or
// returns without an answer while the client is still there, which makes
// net/http answer 200. It does not when next answers anything else or panics.
func (v *Verifier) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := v.VerifyRequest(w, r)
		if err != nil {
			v.reject(w, r, err)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), contextKey{}, d))
		if v.deduper == nil || d.EventID == "" {
			next.ServeHTTP(w, r)
			return
		}
		v.once(w, r, d.EventID, next)
	})
}

// EventHandler returns a handler that calls handle with the event of every
// authentic request, one after the other or several at once, as requests come.
// handle finds the [Delivery] with [FromContext]; ctx ends when the service has
// given up waiting.
//
// When handle returns nil, the answer is 200 and the service is done with the
// event. When it returns an error, the answer is 500, the service sends the event
// again later, and [Options.OnReject] gets the error in an [ErrNotHandled]: set
// it, or nobody learns the reason. A signed body that is not an event is answered
// 400. Everything else is as with [Verifier.Handler], [Options.Deduper] too.
//
// handle should return nil for types of events that it does not know: the
// service may add some.
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

// reject answers a request that was refused with err.
func (v *Verifier) reject(w http.ResponseWriter, r *http.Request, err error) {
	if v != nil && v.onReject != nil {
		v.onReject(r, err)
	}
	status, text := Status(err), err.Error()
	switch status {
	case http.StatusBadRequest:
		if errors.Is(err, ErrBody) {
			// The cause is a network error, whose text can name addresses.
			text = ErrBody.Error()
		}
	case http.StatusUnauthorized:
		// RFC 9110, section 15.5.2: a 401 has to name a challenge.
		w.Header().Set("WWW-Authenticate", `HMAC-SHA256 header="`+SignatureHeader+`"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusUnsupportedMediaType:
		// RFC 9110, section 15.5.16: says that the coding is what is wrong.
		w.Header().Set("Accept-Encoding", "identity")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusInternalServerError:
		// The cause can name the database, or anything.
		for _, reason := range [...]error{ErrDeduper, ErrNotHandled} {
			if errors.Is(err, reason) {
				text = reason.Error()
				break
			}
		}
	}
	http.Error(w, text, status)
}

// contextKey is the key of the Delivery in a context.
type contextKey struct{}

// FromContext returns the Delivery that [Verifier.Handler] put into the
// request's context. ok is false when the request did not come through it.
func FromContext(ctx context.Context) (d Delivery, ok bool) {
	d, ok = ctx.Value(contextKey{}).(Delivery)
	return d, ok
}
