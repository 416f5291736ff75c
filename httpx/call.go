package httpx

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/limits"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// A call is one request in progress. Calls and their buffers are reused.
type call struct {
	h         *Handler
	w         http.ResponseWriter
	r         *http.Request
	route     *route
	who       *formsvc.Principal
	ids       [maxIDs]formsvc.ID // the identifiers in the path, in order
	requestID string
	body      wire.Body
	idem      formsvc.Idempotency // without a Key: none
	repeated  bool                // whether the result is that of an earlier call with the key
	whole     bool                // whether idem knows the whole request
	quota     formsvc.QuotaState  // as the reply shows it; zero for none
	counted   bool                // whether the request counts for the quota
	out       []byte              // the body of the reply
	values    []string            // backing array for header values; not reused
	sent      bool                // whether a part of the reply is out
	slot      gate.Slot           // of a look-up until the call is counted, then see admit
	weight    int64               // bytes reserved for its body and its reply
	replies   int64               // those for its reply
	limit     time.Duration       // of its work; 0: none
	work      context.Context     // see ctx
	stop      func()              // ends work
}

// keep is the limit of buffers that are kept for the next call. A list longer than spillAt is sent in parts, each of
// which fits.
const (
	keep    = 64 << 10
	spillAt = 48 << 10
)

func (c *call) begin(h *Handler, w http.ResponseWriter, r *http.Request) {
	if r.Body == nil { // made by http.NewRequest
		r.Body = http.NoBody
	}
	c.h, c.w, c.r, c.limit = h, w, r, h.timeout
	c.values = make([]string, 0, 10) // X-Request-Id, five of the quota, Content-Length, Etag, Location
	c.requestID = limits.RequestID(r)
	c.setHeader("X-Request-Id", c.requestID)
}

// reset clears the request, so that a pooled call keeps nothing of it alive.
func (c *call) reset() {
	c.body.Reset()
	*c = call{body: c.body, out: c.out[:0]}
	if cap(c.out) > keep {
		c.out = nil
	}
}

// ctx returns the context for work on the call. It ends after [Options.Timeout], which begins with the first use, and again when the
// body was read.
func (c *call) ctx() context.Context {
	if c.limit <= 0 {
		return c.r.Context()
	}
	if c.work == nil {
		c.work, c.stop = context.WithTimeout(c.r.Context(), c.limit)
	}
	return c.work
}

// pause stops the time limit until the next use of ctx.
func (c *call) pause() {
	if c.stop != nil {
		c.stop()
	}
	c.work, c.stop = nil, nil
}

// noQuery refuses all parameters.
func (h *Handler) noQuery(c *call) error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	_, err := parseQuery(c.r.URL.RawQuery, "")
	return err
}

// reserve charges n bytes of the reply to the account until the client has read them, without the first 16 KiB. They include bytes that
// were reserved for the reply before. A request that changes nothing fails if they aren't free.
func (c *call) reserve(n int) error {
	more := int64(n) - wire.FreeBody - c.replies
	if more <= 0 || c.who == nil {
		return nil
	}
	bodies, account := c.h.shared.Bytes, string(c.who.AccountID)
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead && !c.repeated {
		bodies.Force(account, more)
	} else if !bodies.Take(account, more) {
		return c.h.overloaded(c, gate.ErrBytes)
	}
	c.replies += more
	c.weight += more
	return nil
}

// release frees what the call reserved.
func (h *Handler) release(c *call) {
	if c.weight == 0 {
		return
	}
	h.shared.Bytes.Give(string(c.who.AccountID), c.weight)
	h.shared.Moved(string(c.who.AccountID), c.weight, h.svc.Now())
}

// Constant header values, shared by all replies: net/http and middleware replace the values of a header and don't write
// into them.
//
//nolint:gochecknoglobals // immutable
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	noSniff     = []string{"nosniff"}
	noStore     = []string{"no-store"}
	revalidate  = []string{"private, no-cache"} // for replies with an ETag
)

// setHeader sets a header. The name must be in canonical form.
func (c *call) setHeader(name, value string) {
	c.values = append(c.values, value)
	n := len(c.values)
	c.w.Header()[name] = c.values[n-1 : n : n]
}

// send replies with the JSON in c.out. cache is the value of Cache-Control.
func (c *call) send(status int, cache []string) error {
	if err := c.reserve(len(c.out)); err != nil {
		return err
	}
	c.start(status, typeJSON, cache, len(c.out))
	c.write()
	return nil
}

// start sends the status and the headers of a reply with a body. size is the length of the body, or -1 if it isn't
// known yet.
func (c *call) start(status int, mediaType, cache []string, size int) {
	header := c.w.Header()
	header["Content-Type"] = mediaType
	header["X-Content-Type-Options"] = noSniff
	header["Cache-Control"] = cache
	if size >= 0 {
		c.setHeader("Content-Length", strconv.Itoa(size))
	}
	c.head(status)
}

// head sends the status and the headers of any reply. The work is done by then, so head releases the call's slot before the client reads
// the reply.
func (c *call) head(status int) {
	c.showQuota()
	c.sent = true
	c.slot.Release()
	c.w.WriteHeader(status)
}

// write sends c.out. It ignores errors: the client has disconnected, and net/http notices that too.
func (c *call) write() {
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(c.out)
	}
}

// spill sends the beginning of a long list, so that no reply is held in memory whole. Such a reply has no
// Content-Length.
func (c *call) spill() {
	if len(c.out) < spillAt {
		return
	}
	if !c.sent {
		c.start(http.StatusOK, typeJSON, noStore, -1)
	}
	c.write()
	c.out = c.out[:0]
}

// sendNotModified replies 304: the client has the current version.
func (c *call) sendNotModified(cache []string) error {
	c.w.Header()["Cache-Control"] = cache
	c.head(http.StatusNotModified)
	return nil
}

// sendNoContent replies 204, or returns err.
func (c *call) sendNoContent(err error) error {
	if err != nil {
		return err
	}
	c.w.Header()["Cache-Control"] = noStore
	c.head(http.StatusNoContent)
	return nil
}

// location returns the address of a new record, one segment below the request's path.
func (h *Handler) location(c *call, id formsvc.ID) string {
	return h.address(c, c.path()) + "/" + string(id)
}

// path returns the path of a request that matched a route, as replies show it: in lower case, since only identifiers
// can be in upper case.
func (c *call) path() string { return strings.ToLower(c.r.URL.Path) }

// address returns the public address of a path of the API.
func (h *Handler) address(c *call, path string) string {
	return cmp.Or(h.baseURL, mount.Prefix(c.r)) + path
}
