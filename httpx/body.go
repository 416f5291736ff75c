package httpx

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
)

// readJSON checks the media type and reads the body, which c.body then decodes.
func (h *Handler) readJSON(c *call) error {
	if err := checkMediaType(c.r.Header); err != nil {
		return err
	}
	if c.r.ContentLength > h.limits.Body {
		return bodyTooLarge(h.limits.Body)
	}
	if err := h.readBody(c); err != nil {
		return err
	}
	if err := c.noQuery(); err != nil {
		return err // this refusal is not remembered
	}
	c.readWhole()
	return nil
}

// readOptionalJSON is readJSON for a body that may be absent; then the media type may be absent too.
func (h *Handler) readOptionalJSON(c *call) error {
	if c.r.ContentLength == 0 {
		if err := c.noQuery(); err != nil {
			return err
		}
		c.readWhole()
		return nil
	}
	return h.readJSON(c)
}

// readBody reads the body into memory. The time limit for work begins again afterwards.
func (h *Handler) readBody(c *call) error {
	if c.r.Body == nil || c.r.Body == http.NoBody {
		return nil
	}
	c.pause()
	var body io.Reader = c.r.Body
	if c.r.ContentLength < 0 || c.r.ContentLength > freeBody {
		body = &weighed{h: h, c: c}
	}
	return c.body.read(body, h.limits.Body)
}

// A weighed body reserves memory as its bytes arrive. It doesn't reserve by Content-Length: then clients could take all
// of it by announcing long bodies.
type weighed struct {
	h *Handler
	c *call
	n int64 // bytes read
}

// Read implements io.Reader.
func (w *weighed) Read(p []byte) (int, error) {
	n, err := w.c.r.Body.Read(p)
	w.n += int64(n)
	more := w.n - freeBody - w.c.weight
	if more <= 0 {
		return n, err
	}
	if !w.h.bodies.take(string(w.c.who.AccountID), more) {
		return n, w.h.overloaded(w.c, errBodies)
	}
	w.c.weight += more
	return n, err
}

// checkMediaType accepts JSON in UTF-8 only.
func checkMediaType(header http.Header) error {
	if err := refuseEncoding(header); err != nil {
		return err
	}
	values := header["Content-Type"]
	if len(values) == 1 && (values[0] == "application/json" || isJSON(values[0])) {
		return nil
	}
	return &problem{
		status: http.StatusUnsupportedMediaType, code: "unsupported_media_type",
		detail: "The header Content-Type must be application/json; the character set is UTF-8.",
	}
}

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

func isJSON(contentType string) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return false
	}
	for name, value := range parameters {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// read reads a body of at most limit bytes. The buffer grows with the bytes that arrive, not by Content-Length.
func (d *decoder) read(body io.Reader, limit int64) error {
	if d.raw == nil {
		d.raw = make([]byte, 0, 4<<10)
	}
	for {
		if len(d.raw) == cap(d.raw) {
			d.raw = append(d.raw, 0)[:len(d.raw)]
		}
		n, err := body.Read(d.raw[len(d.raw):cap(d.raw)])
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
