package httpx

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/gate"
)

// readJSON checks the media type and reads the body, which c.body then decodes.
func (h *Handler) readJSON(c *call) error {
	if err := c.checkMediaType(); err != nil {
		return err
	}
	if c.r.ContentLength > h.shared.Body {
		return bodyTooLarge(h.shared.Body)
	}
	c.pause()               // the time limit for work begins again afterwards
	if c.r.ProtoMajor > 1 { // a connection has many streams, each of which takes memory
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(h.bodyGrace + gate.PaceTime(max(c.r.ContentLength, 0))))
	}
	err := c.body.read(c.r.Body, c.r.ContentLength, h.shared.Body, func(n int64) error {
		if more := n - freeBody - c.weight; more > 0 {
			if !h.shared.Bytes.Take(string(c.who.AccountID), more) {
				return h.overloaded(c, gate.ErrBytes)
			}
			c.weight += more
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.readWhole()
}

// readOptionalJSON is readJSON for a body that may be absent; then the media type may be absent too.
func (h *Handler) readOptionalJSON(c *call) error {
	if c.r.ContentLength == 0 {
		return c.readWhole()
	}
	return h.readJSON(c)
}

// mergePatch is the media type of RFC 7396, which PATCH takes beside JSON.
const mergePatch = "application/merge-patch+json"

// checkMediaType accepts JSON in UTF-8 only.
func (c *call) checkMediaType() error {
	if err := refuseEncoding(c.r.Header); err != nil {
		return err
	}
	patch, want := c.route.Method == http.MethodPatch, "application/json"
	values := c.r.Header["Content-Type"]
	if len(values) == 1 && (values[0] == want || isJSON(values[0], patch)) {
		return nil
	}
	if patch {
		c.acceptPatch()
		want = mergePatch + " or application/json"
	}
	return &problem{
		status: http.StatusUnsupportedMediaType, code: "unsupported_media_type",
		detail: "The header Content-Type must be " + want + "; the character set is UTF-8.",
	}
}

// acceptPatch says what PATCH takes (RFC 5789).
func (c *call) acceptPatch() { c.setHeader("Accept-Patch", mergePatch+", application/json") }

// refuseEncoding refuses compressed bodies, since we don't expand them.
func refuseEncoding(header http.Header) error {
	for _, encoding := range header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return &problem{
				status: http.StatusUnsupportedMediaType, code: "unsupported_content_encoding",
				detail: "The body must not be compressed.",
			}
		}
	}
	return nil
}

func isJSON(contentType string, patch bool) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" && (!patch || mediaType != mergePatch) {
		return false
	}
	for name, value := range parameters {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// readAtOnce is how many bytes of a body are read before other requests have their turn.
const readAtOnce = 64 << 10

// read reads a body of at most limit bytes, of which length are announced, or -1. The buffer grows fourfold with the bytes that arrive,
// but not beyond length: a client that only announces a long body gets no memory. reserve is called with each new size.
func (d *decoder) read(body io.Reader, length, limit int64, reserve func(size int64) error) error {
	if d.raw == nil {
		d.raw = make([]byte, 0, 4<<10)
	}
	for {
		if len(d.raw) == cap(d.raw) {
			size := min(4*int64(cap(d.raw)), limit+1)
			if length >= int64(cap(d.raw)) {
				size = min(size, length+1) // one more, to see the end
			}
			if err := reserve(size); err != nil {
				return err
			}
			d.raw = append(make([]byte, 0, size), d.raw...)
		}
		if len(d.raw) >= readAtOnce { // many long bodies together would delay short requests
			runtime.Gosched()
		}
		n, err := body.Read(d.raw[len(d.raw):min(cap(d.raw), len(d.raw)+readAtOnce)])
		d.raw = d.raw[:len(d.raw)+n]
		if int64(len(d.raw)) > limit {
			return bodyTooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
	}
}

// unreadable returns the problem for a body that broke off or is beyond the memory limit.
func unreadable(err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &problem{
			status: http.StatusRequestTimeout, code: "body_timeout", hangUp: true, cause: err,
			detail: "The body didn't arrive in time.",
		}
	}
	return &problem{
		status: http.StatusBadRequest, code: "body_incomplete", hangUp: true, cause: err,
		detail: "The body is incomplete or breaks HTTP framing.",
	}
}
