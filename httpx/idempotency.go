package httpx

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/formsvc/toolkit/formsvc"
)

// A onceState is the idempotency state of a call. The zero value is a call without an Idempotency-Key.
type onceState struct {
	key string
	// sum is the hash of the whole request. If whole is set, it was known before the call changed anything, so that a
	// refusal can be stored too.
	sum     [sha256.Size]byte
	whole   bool
	settled bool // whether the stored reply for the key has been looked up
}

// A reply is the reply to a call that changed something.
type reply struct {
	status   int
	etag     string // "" for none
	location string // "" for none
	body     []byte // a JSON object
	// secret is shown as the last field of the reply, and never stored: a replay has no secret.
	secret string
	about  formsvc.ID // the response whose erasure deletes the stored reply; "" for none
	// sum is the hash of the whole request, for requests that are known only once the result is.
	sum [sha256.Size]byte
}

// once serves a POST that changes something. The change happens once, however often the request arrives with the same
// Idempotency-Key. The function do makes the whole change in one call of one method of svc, which is a view of the
// service for this request: it knows the key and the principal. The function render builds the reply from the result
// and appends the body to b. It may run inside the transaction, on another goroutine and more than once, so it must use
// only its arguments and constants.
//
//	return once(h, c, func(svc *formsvc.Service) (formsvc.Campaign, error) {
//		return svc.Campaigns.Create(c.ctx(), c.who.AccountID, in)
//	}, func(campaign *formsvc.Campaign, b []byte) reply {
//		return reply{status: http.StatusCreated, body: appendCampaign(b, campaign), …}
//	})
//
// T must be the type that the method passes to [formsvc.Once.Reply]. Before, the handler reads the body with readJSON
// or readOptionalJSON. serveOnce stores the problems that the handler returns, before or here.
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
		case err == nil && kept == nil: // the method stores no reply; a test finds that out
			return c.reply(render(&result, nil))
		case err == nil: // send the same bytes that a replay gets
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

// keyed makes the change with the key. It returns the stored reply and the result.
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

// recalls is how often a call is tried if the stored reply that it repeats has expired: once is enough, unless clocks
// differ.
const recalls = 3

var errUnsettled = fmt.Errorf("httpx: a record of the key comes and goes: %w", formsvc.ErrUnavailable)

// service returns the service for a call that changes something. The audit trail, where there is one, names the key. If
// the host application authenticated the request without a key, it names that principal, or else the default actor of
// the Service.
// It refuses a body that breaks rules which only the decoder sees.
func (h *Handler) service(c *call) *formsvc.Service {
	svc := h.svc
	if len(c.body.noted) > 0 {
		svc = svc.Refusing(c.body.noted)
	}
	switch {
	case c.route.Permission != formsvc.WebhooksWrite && c.route.Method != http.MethodDelete:
		return svc
	case c.who.KeyID != "":
		return svc.As("key " + string(c.who.KeyID))
	case c.who.KeyName != "":
		return svc.As(c.who.KeyName)
	default:
		return svc
	}
}

// remembered returns the part of the reply that is stored.
func (a *reply) remembered(sum [sha256.Size]byte) formsvc.Reply {
	return formsvc.Reply{
		Request: sum, Status: a.status, ETag: a.etag, Location: a.location, Body: a.body, ResponseID: a.about,
	}
}

// reply sends the reply.
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

// serveOnce serves a POST with an Idempotency-Key. It serves one at a time for each key here, and stores refusals as
// well as changes.
func (h *Handler) serveOnce(c *call) error {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return err
	}
	end, err := h.svc.Begin(c.who.AccountID, key)
	if err != nil {
		return &problem{
			status: http.StatusConflict, code: "idempotency_in_flight", passing: true, cause: err,
			detail: "A request with this Idempotency-Key is in progress. Wait for its reply, then retry.",
		}
	}
	defer end()
	c.once.key = key
	if err := c.route.handle(h, c); err != nil {
		return h.settle(c, err)
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
	return "", badRequest("invalid_idempotency_key", fmt.Sprintf(
		"Idempotency-Key must be there once and have 1 to %d characters of printable ASCII without spaces.",
		formsvc.MaxIdempotencyKey))
}

// readWhole records that the whole body was read into c.body.
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

// settle returns the error of a failed call, after sending the reply of an earlier call with the key if there is one:
// what succeeded then may be refused now. It stores the problem, except one that the client can only retry.
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
		failed := h.svc.Remember(c.ctx(), c.who.AccountID, c.once.key, kept.remembered(c.once.sum))
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

// lasting reports whether the problem depends on the request itself, and not on the principal, on limits, or on the
// server.
func (p *problem) lasting() bool {
	switch p.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, statusClientGone:
		return false
	}
	return p.status < http.StatusInternalServerError
}

// replay sends the stored reply for the key, and reports whether there was one.
func (h *Handler) replay(c *call) (done bool, err error) {
	a, err := h.svc.Recall(c.ctx(), c.who.AccountID, c.once.key)
	if errors.Is(err, formsvc.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.once.settled = true
	return true, h.sendAgain(c, &a)
}

// sendAgain sends a stored reply if it belongs to the same request.
func (h *Handler) sendAgain(c *call, a *formsvc.Reply) error {
	if a.Request != c.once.sum {
		return &problem{
			status: http.StatusUnprocessableEntity, code: "idempotency_mismatch", cause: formsvc.ErrMismatch,
			detail: "This Idempotency-Key was used for another request. Send a new one with every new request.",
		}
	}
	h.uncount(c) // all replays pass here
	if wait, ok := h.replays.take(string(c.who.KeyID), h.now()); !ok {
		return &problem{
			status: http.StatusTooManyRequests, code: "rate_limited", retryAfter: seconds(wait),
			detail: "The key repeats requests too fast. Its limit is " + strconv.Itoa(replayRate) + " repeated requests a second.",
		}
	}
	if err := c.reserve(len(a.Body)); err != nil {
		return err
	}
	c.w.Header()["Idempotent-Replayed"] = replayed
	if a.Status == http.StatusGone {
		return &problem{
			status: http.StatusGone, code: "erased",
			detail: "The result of this call was erased. To create something new, send another Idempotency-Key.",
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

// How many stored replies a key gets: per second, and at once. They don't count for the quota.
const (
	replayRate  = 200
	replayBurst = 5 * replayRate
)

//nolint:gochecknoglobals // immutable
var replayed = []string{"true"}
