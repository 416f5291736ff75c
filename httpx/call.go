package httpx

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A call is one request on its way through. Calls are used again, and their
// buffers with them.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	route     *route
	who       *formsvc.Principal
	ids       [maxIDs]formsvc.ID // the identifiers in the path, in their order
	requestID string
	body      decoder
	once      onceState
	quota     formsvc.QuotaState // after the request was counted
	out       []byte             // the answer's body
	values    []string           // room for the values of headers, not used again
	sent      bool               // whether a part of the answer is out
	place     *gate              // where it has a place; nil: nowhere
	weight    int64              // bytes of room that its body has
}

// keep bounds the buffers that are kept for the next call. A list that grows
// beyond spillAt is sent in parts, each of which then fits.
const (
	keep    = 64 << 10
	spillAt = 48 << 10
)

func (c *call) begin(w http.ResponseWriter, r *http.Request) {
	c.w, c.r = w, r
	c.values = make([]string, 0, 8) // X-Request-Id, three of the quota, Content-Length, Etag, Location
	c.requestID = requestID(r)
	c.setHeader("X-Request-Id", c.requestID)
}

// reset forgets the request, so that a waiting call holds nothing of it.
func (c *call) reset() {
	c.w, c.r, c.route, c.who = nil, nil, nil, nil
	c.quota = formsvc.QuotaState{}
	c.ids = [maxIDs]formsvc.ID{}
	c.requestID, c.values, c.sent, c.once = "", nil, false, onceState{}
	c.body.reset()
	c.out = c.out[:0]
	if cap(c.out) > keep {
		c.out = nil
	}
}

// requestID returns the client's identifier of the request if it is sane, or a
// new one. It need not be secret, only unique.
func requestID(r *http.Request) string {
	if values := r.Header["X-Request-Id"]; len(values) == 1 && saneRequestID(values[0]) {
		return values[0]
	}
	var random [16]byte
	var text [32]byte
	binary.LittleEndian.PutUint64(random[:8], rand.Uint64()) //nolint:gosec // unique, not secret
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64()) //nolint:gosec // unique, not secret
	hex.Encode(text[:], random[:])
	return string(text[:])
}

func saneRequestID(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// Values of headers that never change, shared by all answers: net/http and
// middleware replace the values of a header, they don't write into them.
//
//nolint:gochecknoglobals // immutable
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	noSniff     = []string{"nosniff"}
	noStore     = []string{"no-store"}
	revalidate  = []string{"private, no-cache"} // for what has an ETag
)

// setHeader sets a header whose name is in canonical form.
func (c *call) setHeader(name, value string) {
	c.values = append(c.values, value)
	n := len(c.values)
	c.w.Header()[name] = c.values[n-1 : n : n]
}

// send answers with the JSON in c.out. cache is the value of Cache-Control.
func (c *call) send(status int, cache []string) error {
	c.start(status, typeJSON, cache, len(c.out))
	c.write()
	return nil
}

// start sends the status and the headers that all answers with a body have.
// size is the length of the body, or -1 when it is not known yet. By then the work is
// done, and the client may take its time to read: the place goes to somebody else.
func (c *call) start(status int, mediaType, cache []string, size int) {
	header := c.w.Header()
	header["Content-Type"] = mediaType
	header["X-Content-Type-Options"] = noSniff
	header["Cache-Control"] = cache
	if size >= 0 {
		c.setHeader("Content-Length", strconv.Itoa(size))
	}
	c.sent = true
	c.leave()
	c.w.WriteHeader(status)
}

// write sends what is in c.out. An error means that the client is gone, which
// needs no answer; net/http notes it too.
func (c *call) write() {
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(c.out)
	}
}

// spill sends a list's beginning when it got long, so that no answer is held in
// memory as a whole. The length of such an answer is not told in advance.
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

// sendNotModified answers 304: the client has what it asked for.
func (c *call) sendNotModified() error {
	c.w.Header()["Cache-Control"] = revalidate
	c.sent = true
	c.w.WriteHeader(http.StatusNotModified)
	return nil
}

// sendNoContent answers 204: what was asked for is so.
func (c *call) sendNoContent() error {
	c.w.Header()["Cache-Control"] = noStore
	c.sent = true
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// location returns the address of a new record, one segment below the one that
// the request was sent to.
func (h *Handler) location(c *call, id formsvc.ID) string {
	return h.address(c, c.path()) + "/" + string(id)
}

// path returns the path of a request that a route was found for, as it is written
// in answers: nothing in it but an identifier can be in upper case.
func (c *call) path() string { return strings.ToLower(c.r.URL.Path) }

// address returns the public address of a path of ours.
func (h *Handler) address(c *call, path string) string {
	if h.baseURL != "" {
		return h.baseURL + path
	}
	asked := askedPath(c.r)
	if path == c.r.URL.Path {
		return asked
	}
	return strings.TrimSuffix(asked, c.r.URL.Path) + path
}

// askedPath returns the path as the client sent it, with the prefix that this
// handler is mounted under. What doesn't end in our own path was changed on the
// way, and what begins with two slashes would name another host.
func askedPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // the absolute form, which clients send to proxies
		if _, rest, ok := strings.Cut(path, "://"); ok {
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				path = rest[i:]
			}
		}
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || !strings.HasSuffix(path, r.URL.Path) {
		return r.URL.Path
	}
	return path
}
