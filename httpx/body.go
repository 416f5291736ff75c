package httpx

import (
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// readJSON checks the media type and reads the body, which c.body then decodes.
func (h *Handler) readJSON(c *call) error {
	if err := c.checkMediaType(); err != nil {
		return err
	}
	if c.r.ContentLength > h.shared.Body {
		return wire.BodyTooLarge(h.shared.Body)
	}
	c.pause()               // the time limit for work begins again afterwards
	if c.r.ProtoMajor > 1 { // a connection has many streams, each of which takes memory
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(h.bodyGrace + gate.PaceTime(max(c.r.ContentLength, 0))))
	}
	err := c.body.Read(c.r.Body, c.r.ContentLength, h.shared.Body, func(n int64) error {
		if more := n - wire.FreeBody - c.weight; more > 0 {
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
	return wire.Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"The header Content-Type must be "+want+"; the character set is UTF-8.")
}

// acceptPatch says what PATCH takes (RFC 5789).
func (c *call) acceptPatch() { c.setHeader("Accept-Patch", mergePatch+", application/json") }

// refuseEncoding refuses compressed bodies, since we don't expand them.
func refuseEncoding(header http.Header) error {
	for _, encoding := range header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return wire.Refuse(http.StatusUnsupportedMediaType, "unsupported_content_encoding", "The body must not be compressed.")
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
