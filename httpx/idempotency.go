package httpx

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
	"github.com/formsvc/toolkit/webhook"
)

// serveOnce serves a POST with an Idempotency-Key. The service does the work once and returns the same result again; a
// refusal is stored here.
func (h *Handler) serveOnce(c *call) error {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return err
	}
	c.idem.Key = key
	if err := h.work(c); err != nil {
		return h.refuse(c, err)
	}
	return nil
}

// idempotencyKey returns the key in the only Idempotency-Key header. The quotes of the IETF draft are part of the key
// like any other character.
func idempotencyKey(header http.Header) (string, error) {
	values := header["Idempotency-Key"]
	if len(values) == 1 && formsvc.CheckIdempotencyKey(values[0]) == nil {
		return values[0], nil
	}
	return "", wire.BadRequest("invalid_idempotency_key", fmt.Sprintf(
		"Idempotency-Key must be there once and have 1 to %d characters of printable ASCII without spaces.",
		formsvc.MaxIdempotencyKey))
}

// readWhole refuses parameters, and records that the whole body was read into c.body: a refusal now depends on nothing but
// the request.
func (c *call) readWhole() error {
	if err := c.h.noQuery(c); err != nil || c.idem.Key == "" {
		return err
	}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s %s?%s\n", c.r.Method, c.path(), c.r.URL.RawQuery)
	_, _ = hash.Write(c.body.Raw)
	hash.Sum(c.idem.Request[:0])
	c.whole = true
	return nil
}

// once calls a method that changes something, with the Idempotency-Key and with the faults that only the decoder sees.
func once[T any](c *call, method func(*formsvc.Service) (T, error)) (result T, err error) {
	call := formsvc.Call{Faults: c.body.Noted}
	if c.idem.Key != "" {
		call.Idempotency = &c.idem
	}
	result, c.repeated, err = formsvc.Do(c.h.service(c), call, method)
	return result, err
}

// service returns the service for a call that changes something, in the name of the API's key or of the principal of the host
// application, or else of the default actor of the Service.
func (h *Handler) service(c *call) *formsvc.Service {
	switch who := c.who; {
	case who.KeyID != "":
		return h.svc.As(formsvc.Actor{Type: webhook.ActorKey, ID: string(who.KeyID), Name: who.KeyName})
	case who.UserID != "" || who.KeyName != "":
		return h.svc.As(formsvc.Actor{Type: webhook.ActorPerson, ID: who.UserID, Name: cmp.Or(who.KeyName, who.UserID)})
	}
	return h.svc
}

// sendDone replies to a POST with the JSON in c.out.
func (c *call) sendDone(status int) error {
	if c.repeated {
		if err := c.h.repeat(c, len(c.out)); err != nil {
			return err
		}
	}
	return c.send(status, noStore)
}

// refuse stores the refusal of a call, except one that the client can only retry, and returns the error to send. It
// sends the refusal of an earlier call with the key instead, if there is one.
func (h *Handler) refuse(c *call, err error) error {
	if p := wire.ProblemOf(c.r.Context(), err); c.whole && !c.sent && lasting(p) {
		refusal := p.Append(nil, c.requestID)
		if failed := h.svc.Refuse(c.ctx(), c.who.AccountID, &c.idem, refusal); failed != nil {
			err = failed
		}
	}
	if errors.Is(err, formsvc.ErrErased) {
		return errors.Join(h.repeat(c, 0), err)
	}
	earlier, ok := errors.AsType[*formsvc.RefusedError](err)
	if !ok {
		return err
	}
	if err := h.repeat(c, len(earlier.Refusal)); err != nil {
		return err
	}
	var sent wire.Document
	if err := json.Unmarshal(earlier.Refusal, &sent); err != nil {
		return err
	}
	c.out = append(c.out[:0], earlier.Refusal...)
	c.start(sent.Status, typeProblem, noStore, len(c.out))
	c.write()
	return nil
}

// lasting reports whether the problem depends on the request itself, and not on the principal, on limits, on other
// requests, or on the server.
func lasting(p *wire.Problem) bool {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, wire.StatusClientGone:
		return false
	}
	return p.Status < http.StatusInternalServerError && !p.Passing && !p.Forget
}

// repeat prepares to send the outcome of an earlier call again, n bytes.
func (h *Handler) repeat(c *call, n int) error {
	if err := c.reserve(n); err != nil {
		return err
	}
	c.setHeader("Idempotent-Replayed", "true")
	return nil
}
