package httpx

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

// A onceState is what a call with an Idempotency-Key knows of itself. The zero
// value is a call without one.
type onceState struct {
	key string
	// sum is of all that was asked for. With whole it was known before the call did
	// anything, so that also a refusal can be remembered.
	sum     [sha256.Size]byte
	whole   bool
	settled bool // whether what is remembered of the key has been found
}

// A reply is the answer to a call that did something.
type reply struct {
	status   int
	etag     string // "" for none
	location string // "" for none
	body     []byte // a JSON object
	// secret is shown in the answer, as its last member, and never kept: a repeated
	// call is answered without it.
	secret string
	about  formsvc.ID // the response with whose erasure the answer goes; "" for none
	// sum is of all that was asked for where only the result tells it.
	sum [sha256.Size]byte
}

// once answers a POST that changes something, so that it happens once however
// often it is sent with the same Idempotency-Key. All that changes is done by one
// call of one method of svc, which is a view for this request: it knows the key, and
// who acts. render makes the answer from the result, appending the body to b. It
// may run inside the unit, on another goroutine and more than once, so it must only
// look at its arguments and at what doesn't change.
//
//	return once(h, c, func(svc *formsvc.Service) (formsvc.Campaign, error) {
//		return svc.Campaigns.Create(c.r.Context(), c.who.AccountID, in)
//	}, func(campaign *formsvc.Campaign, b []byte) reply {
//		return reply{status: http.StatusCreated, body: appendCampaign(b, campaign), …}
//	})
//
// T must be what the method gives to [formsvc.Once.Reply]. A handler reads the body with
// readJSON or readOptionalJSON before. Whatever problem it returns, here or later, is
// remembered by serveOnce.
func once[T any](
	h *Handler, c *call, do func(svc *formsvc.Service) (T, error), render func(result *T, b []byte) reply,
) error {
	svc := h.service(c)
	if c.once.key == "" {
		result, err := do(svc)
		if err != nil {
			return err
		}
		return c.reply(render(&result, c.out[:0]))
	}
	for range recalls {
		kept, result, err := keyed(c, svc, do, render)
		switch {
		case err == nil && kept == nil: // the method remembers nothing; a test finds that out
			return c.reply(render(&result, nil))
		case err == nil: // what is sent is what a repetition gets
			return c.reply(*kept)
		case !errors.Is(err, formsvc.ErrRepeated):
			return err
		}
		if done, err := h.replay(c); done || err != nil {
			return err
		}
	}
	return errUnsettled
}

// keyed does it with the key, and returns what was kept of the result.
func keyed[T any](
	c *call, svc *formsvc.Service, do func(svc *formsvc.Service) (T, error), render func(result *T, b []byte) reply,
) (kept *reply, result T, err error) {
	result, err = do(svc.Once(&formsvc.Once{
		AccountID: c.who.AccountID, Key: c.once.key,
		Reply: func(v any) formsvc.Reply {
			r, ok := v.(*T)
			if !ok {
				panic(fmt.Sprintf("httpx: the answer to %s is made of %T", c.route.Name, v))
			}
			kept = new(render(r, nil))
			if !c.once.whole {
				c.once.sum = kept.sum
			}
			return kept.remembered(c.once.sum)
		},
	}))
	return kept, result, err
}

// recalls bounds how often a call is tried again because what it repeated is too
// old: once, unless clocks differ.
const recalls = 3

var errUnsettled = fmt.Errorf("httpx: a record of the key comes and goes: %w", formsvc.ErrUnavailable)

// service returns the service for a call that changes something. Where there is an
// audit trail, the trail names the key. An embedder's own authentication may know no
// key; then it names who the embedder says it is, or else whoever the Service is for.
func (h *Handler) service(c *call) *formsvc.Service {
	switch {
	case c.route.Permission != formsvc.WebhooksWrite:
		return h.svc
	case c.who.KeyID != "":
		return h.svc.As("key " + string(c.who.KeyID))
	case c.who.KeyName != "":
		return h.svc.As(c.who.KeyName)
	default:
		return h.svc
	}
}

// remembered returns what is kept of the answer.
func (a *reply) remembered(sum [sha256.Size]byte) formsvc.Reply {
	return formsvc.Reply{
		Request: sum, Status: a.status, ETag: a.etag, Location: a.location, Body: a.body, ResponseID: a.about,
	}
}

// reply answers.
func (c *call) reply(a reply) error {
	if a.etag != "" {
		c.setHeader("Etag", a.etag)
	}
	if a.location != "" {
		c.setHeader("Location", a.location)
	}
	c.out = a.body
	if a.secret != "" {
		c.out = append(c.out[:len(c.out)-1], `,"secret":`...)
		c.out = append(appendString(c.out, a.secret), '}')
	}
	return c.send(a.status, noStore)
}

// serveOnce serves a POST with an Idempotency-Key: at most one at a time here, and
// what the route refused is remembered like what it did.
func (h *Handler) serveOnce(c *call) error {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return err
	}
	end, err := h.svc.Begin(c.who.AccountID, key)
	if err != nil {
		return &problem{
			status: http.StatusConflict, code: "idempotency_in_flight", passing: true, cause: err,
			detail: "A request with this Idempotency-Key is being served. Wait for its answer, then try again.",
		}
	}
	defer end()
	c.once.key = key
	if err := c.route.handle(h, c); err != nil {
		return h.settle(c, err)
	}
	return nil
}

// idempotencyKey returns the one key in the header. The quotes that the IETF draft
// wants around it are a part of it like any other character.
func idempotencyKey(header http.Header) (string, error) {
	values := header["Idempotency-Key"]
	if len(values) == 1 && formsvc.CheckIdempotencyKey(values[0]) == nil {
		return values[0], nil
	}
	return "", badRequest("invalid_idempotency_key", fmt.Sprintf(
		"Idempotency-Key must be there once and have 1 to %d characters of printable ASCII without spaces.",
		formsvc.MaxIdempotencyKey))
}

// readWhole notes that the body, which is in c.body, was read to its end.
func (c *call) readWhole() {
	if c.once.key == "" {
		return
	}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s %s?%s\n", c.r.Method, c.path(), c.r.URL.RawQuery)
	_, _ = hash.Write(c.body.raw)
	hash.Sum(c.once.sum[:0])
	c.once.whole = true
}

// settle returns the answer to a call that failed, which is that of an earlier call
// with the key if there was one: by now the same may be refused. What a client can
// do nothing about but try again is not remembered.
func (h *Handler) settle(c *call, err error) error {
	p := problemOf(c.r.Context(), err)
	if c.sent || !c.once.whole || c.once.settled || !p.lasting() {
		return err
	}
	for range recalls {
		if p.passing {
			if done, failed := h.replay(c); done || failed != nil {
				return failed
			}
			return err
		}
		kept := reply{status: p.status, body: p.append(nil, c.requestID)}
		failed := h.svc.Remember(c.r.Context(), c.who.AccountID, c.once.key, kept.remembered(c.once.sum))
		if failed == nil {
			return err
		}
		if !errors.Is(failed, formsvc.ErrRepeated) {
			return failed
		}
		if done, failed := h.replay(c); done || failed != nil {
			return failed
		}
	}
	return errUnsettled
}

// lasting reports whether the problem tells of the call itself and not of who sent
// it, of how often, or of us.
func (p *problem) lasting() bool {
	switch p.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, statusClientGone:
		return false
	}
	return p.status < http.StatusInternalServerError
}

// replay answers with what is remembered of the key, and reports whether there was
// anything.
func (h *Handler) replay(c *call) (done bool, err error) {
	a, err := h.svc.Recall(c.r.Context(), c.who.AccountID, c.once.key)
	if errors.Is(err, formsvc.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.once.settled = true
	return true, h.sendAgain(c, &a)
}

// sendAgain answers with an answer that was given before, if it was to the same
// question.
func (h *Handler) sendAgain(c *call, a *formsvc.Reply) error {
	if a.Request != c.once.sum {
		return &problem{
			status: http.StatusUnprocessableEntity, code: "idempotency_mismatch", cause: formsvc.ErrMismatch,
			detail: "This Idempotency-Key was used for another request. Send a new one with every new request.",
		}
	}
	h.uncount(c) // the one place that all replays pass
	c.w.Header()["Idempotent-Replayed"] = replayed
	if a.Status == http.StatusGone {
		return &problem{
			status: http.StatusGone, code: "erased",
			detail: "What this call made was erased. To make something new, send another Idempotency-Key.",
		}
	}
	if a.Status < http.StatusBadRequest {
		return c.reply(reply{status: a.Status, etag: a.ETag, location: a.Location, body: a.Body})
	}
	c.out = a.Body
	c.start(a.Status, typeProblem, noStore, len(c.out))
	c.write()
	return nil
}

//nolint:gochecknoglobals // immutable
var replayed = []string{"true"}
