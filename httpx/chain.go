package httpx

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// This file is the way of a request, from top to bottom. [Handler.run] has its steps.

var errPanic = errors.New("panic")

// A handler replies to a call with [call.send], or returns an error, of which the client gets a problem document.
type handler func(*Handler, *call) error

// ServeHTTP serves one request. As [http.ServeMux] does, it sets Pattern of the request to the method and pattern of
// the [Route], such as "GET /v1/campaigns/{uuid}", for middleware that measures or traces requests; to "/" if no route has the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	below := mount.Below(r, h.routes)
	if u := below.URL; mount.Plain(below) && (u.RawPath == "" || u.RawPath == u.Path) { // none of our paths needs an escape
		h.routes.ServeHTTP(w, below)
	} else {
		h.serve(&resource{}, w, below)
	}
	r.Pattern = below.Pattern
}

// serve serves one request for a path. It gives the request an ID and survives panics, whichever route serves it.
func (h *Handler) serve(x *resource, w http.ResponseWriter, r *http.Request) {
	c, _ := h.calls.Get().(*call)
	if c == nil {
		c = new(call)
	}
	c.begin(h, w, r)
	defer h.end(c)
	err := h.find(c, x)
	if err == nil {
		err = h.run(c)
	}
	if err != nil {
		h.fail(c, err)
	}
}

// find finds the route of the path and the method.
func (h *Handler) find(c *call, x *resource) error {
	if !x.parseIDs(c) {
		return formsvc.ErrNotFound
	}
	if c.route = x.route(c.r.Method); c.route == nil {
		if x.route(http.MethodPatch) != nil {
			c.acceptPatch()
		}
		return &wire.Problem{
			Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Allow: x.allow,
			Detail: "This address takes " + x.allow + ".",
		}
	}
	c.r.Pattern = c.route.matched
	return nil
}

// run takes the steps of a request in their order. It counts a request for the rate and the quota of its key, whatever its outcome,
// unless it is refused for overload.
func (h *Handler) run(c *call) error {
	if c.route.Public {
		return h.work(c)
	}
	if err := h.identify(c); err != nil {
		return err
	}
	if err := h.count(c); err != nil {
		return err
	}
	c.slot.Release() // of the look-up
	for _, permission := range []formsvc.Permission{c.route.Permission, c.route.Also} {
		if err := c.needs(permission); err != nil {
			return err
		}
	}
	if c.route.Method == http.MethodPost && len(c.r.Header["Idempotency-Key"]) > 0 {
		return h.serveOnce(c)
	}
	return h.work(c)
}

// work reads the query and the body, acquires a slot, and has the route reply. The client may send slowly, so the request has no slot
// before.
func (h *Handler) work(c *call) error {
	if c.route.read != nil {
		if err := c.route.read(h, c); err != nil {
			return err
		}
	}
	if !c.route.Public {
		if err := h.admit(c); err != nil {
			return err
		}
	}
	return c.route.handle(h, c)
}

// identify finds out whose request it is. It and count ask the store, and anyone can make them, so they have slots of their own,
// which the accounts whose keys are known share with the addresses of other keys.
func (h *Handler) identify(c *call) (err error) {
	key := bearer(c.r.Header)
	account, known := h.svc.Keys.Known(key)
	tenant := string(account)
	if !known {
		tenant = limits.Network(h.clientAddress(c.r))
	}
	if c.slot, err = h.shared.Lookups.Acquire(c.r.Context(), tenant); err != nil {
		return h.overloaded(c, err)
	}
	c.who, err = h.principal(c, key)
	if errors.Is(err, formsvc.ErrUnauthenticated) {
		return h.failed(c, err)
	}
	return err
}

// principal returns whom the request acts for: the visitor of the console, the principal of the host application, or that of the key.
func (h *Handler) principal(c *call, key string) (*formsvc.Principal, error) {
	if asked := people.Of(c.r.Context()); asked != nil {
		return asked.Who, nil
	}
	if h.authenticate != nil {
		who, err := h.authenticate(c.r)
		if err == nil && who != nil || err != nil && !errors.Is(err, formsvc.ErrUnauthenticated) {
			return who, err
		}
	}
	return h.svc.Keys.Authenticate(c.ctx(), key)
}

// bearer returns the API key in the only Authorization header, or "". Two headers are refused, since a proxy might read
// another one than we do.
func bearer(header http.Header) string {
	values := header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(key, " ")
}

// needs returns an error unless the principal has the permission; "" is no permission.
func (c *call) needs(permission formsvc.Permission) error {
	if permission == "" || c.who.May(permission) {
		return nil
	}
	return &wire.Problem{
		Status: http.StatusForbidden, Code: "permission_denied", Permission: permission,
		Detail: "The key lacks the permission " + string(permission) + ".",
	}
}

// admit acquires the request's slot. The call releases it when it waits for its client: when its reply begins, or its file is sent or
// received. It doesn't get another one.
func (h *Handler) admit(c *call) (err error) {
	account := string(c.who.AccountID)
	if c.slot, err = h.shared.For(account, c.route.list, h.svc.Now()).Acquire(c.r.Context(), account); err != nil {
		return h.overloaded(c, err)
	}
	c.slot.PauseAfter(len(c.body.Raw), h.shared.Requests)
	return nil
}

// fail sends the problem document for err.
func (h *Handler) fail(c *call, err error) {
	p := wire.ProblemOf(c.r.Context(), err)
	if p.Overload {
		h.uncount(c)
		c.quota = formsvc.QuotaState{}
	}
	if (p.Status >= http.StatusInternalServerError || p.Status == wire.StatusClientGone) && !p.Told {
		level := slog.LevelError
		if p.Status == wire.StatusClientGone {
			level = slog.LevelDebug
		}
		h.logger.LogAttrs(c.r.Context(), level, "request failed",
			c.logged(slog.Int("status", p.Status), slog.String("error", err.Error()))...)
	}
	if c.sent { // a part of another reply is out: only cutting it short tells the client
		panic(http.ErrAbortHandler)
	}
	c.sendProblem(p)
}

// sendProblem sends the problem document.
func (c *call) sendProblem(p *wire.Problem) {
	header := c.w.Header()
	delete(header, "Etag") // of a reply that found no memory
	delete(header, "Location")
	switch p.Status {
	case http.StatusUnauthorized:
		header["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		header["Allow"] = []string{p.Allow}
	}
	retry := p.RetryAfter
	if p.Passing || p.Status == http.StatusServiceUnavailable {
		retry = "1"
	}
	if retry != "" {
		header["Retry-After"] = []string{retry}
	}
	if p.HangUp && c.r.ProtoMajor == 1 { // HTTP/2 resets the stream; closing would end the client's other requests, too
		header["Connection"] = []string{"close"}
	}
	c.out = p.Append(c.out[:0], c.requestID)
	c.start(p.Status, typeProblem, noStore, len(c.out))
	c.write()
}

// end puts the call back into the pool, or sends 500 for a handler that panicked. A call that panicked isn't used
// again.
func (h *Handler) end(c *call) {
	v := recover()
	c.slot.Release()
	c.pause()
	h.release(c)
	if v == nil {
		c.reset()
		h.calls.Put(c)
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	h.logger.LogAttrs(c.r.Context(), slog.LevelError, "panic",
		c.logged(slog.String("error", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))...)
	if c.sent {
		panic(http.ErrAbortHandler)
	}
	c.sendProblem(wire.ProblemOf(c.r.Context(), errPanic))
}

// logged adds the attributes that identify the request to those of a log record.
func (c *call) logged(attrs ...slog.Attr) []slog.Attr {
	pattern := ""
	if c.route != nil {
		pattern = c.route.Pattern
	}
	return append(attrs, slog.String("requestId", c.requestID),
		slog.String("method", c.r.Method), slog.String("route", pattern))
}
