package httpx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// uploadFile adds a file to a response. It looks up the record before it reads the body, which [formsvc.Files.Upload]
// reads.
//
// An idempotent retry is compared by the file and not by the body, since multipart boundaries differ between attempts.
// A refused upload changes nothing, and the refusal isn't stored.
func (h *Handler) uploadFile(c *call) error {
	c.pause()
	c.limit = 0 // it takes as long as the client sends
	c.idem.Request = sha256.Sum256([]byte(c.r.Method + " " + c.path()))
	src := h.newSource(c)
	f, err := h.upload(c, src)
	if err == nil {
		src.body.Finish()
		c.setHeader("Etag", fileTag(&f))
		c.setHeader("Location", h.address(c, files+"/"+string(f.ID)))
		c.out = f.AppendJSON(c.out)
		err = c.sendDone(http.StatusCreated)
	}
	if err != nil {
		return src.fail(c.r.Context(), err)
	}
	return nil
}

// upload reads the metadata of a file from the request and stores the file.
func (h *Handler) upload(c *call, src *source) (formsvc.File, error) {
	in, err := h.fileInput(c, src)
	if err != nil {
		return formsvc.File{}, err
	}
	done, err := h.transfer(c, 1)
	if err != nil {
		return formsvc.File{}, err
	}
	defer done()
	f, err := once(c, func(svc *formsvc.Service) (formsvc.File, error) {
		return svc.Files.Upload(c.r.Context(), c.responseKey(), in)
	})
	if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok && src.raw {
		for i := range invalid.Fields {
			invalid.Fields[i].Pointer = strings.TrimPrefix(invalid.Fields[i].Pointer, "/")
		}
		return f, invalidParameter(invalid.Fields)
	}
	return f, err
}

// fileInput checks the headers of an upload.
func (h *Handler) fileInput(c *call, src *source) (formsvc.FileInput, error) {
	header := c.r.Header
	if err := refuseEncoding(header); err != nil {
		return formsvc.FileInput{}, err
	}
	if types := header["Content-Type"]; len(types) == 1 {
		if mediaType, params, _ := mime.ParseMediaType(types[0]); mediaType == "multipart/form-data" {
			return h.formInput(c, src, params["boundary"])
		}
	}
	if len(header["Content-Disposition"]) == 0 || len(header["Content-Type"]) > 1 {
		return formsvc.FileInput{}, wire.Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Send multipart/form-data with a part named file, or the bytes of the file with its Content-Type "+
				"and Content-Disposition: attachment; filename=….")
	}
	return h.rawInput(c, src)
}

// rawInput returns the input of an upload whose body is the file.
func (h *Handler) rawInput(c *call, src *source) (in formsvc.FileInput, err error) {
	src.raw = true
	q, err := parseQuery(c.r.URL.RawQuery, "module")
	if err != nil {
		return in, err
	}
	lines := c.r.Header["Content-Disposition"]
	if len(lines) > 1 {
		return in, badHeader("Content-Disposition must be there once.")
	}
	said, wrong := parseDisposition(lines[0], "attachment")
	if wrong != "" {
		return in, badHeader("Content-Disposition " + wrong + ".")
	}
	if src.want, err = contentDigests(c.r.Header["Content-Digest"]); err != nil {
		return in, err
	}
	if err := h.checkLength(c, 0); err != nil {
		return in, err
	}
	return formsvc.FileInput{
		Name: said["filename"], ContentType: c.r.Header.Get("Content-Type"), Module: q.module, Content: src,
	}, nil
}

// formInput returns the input of an upload whose body is a form.
func (h *Handler) formInput(c *call, src *source, boundary string) (in formsvc.FileInput, err error) {
	if !validBoundary(boundary) {
		return in, wire.BadRequest("invalid_boundary",
			"Content-Type needs a boundary of 1 to 70 characters that RFC 2046 allows in one.")
	}
	if err := h.noQuery(c); err != nil {
		return in, err
	}
	if src.want, err = contentDigests(c.r.Header["Content-Digest"]); err != nil {
		return in, err
	}
	if err := h.checkLength(c, maxFormExtra); err != nil {
		return in, err
	}
	f := newForm(src, boundary)
	return formsvc.FileInput{Content: f, Complete: f.complete}, nil
}

// checkLength refuses a body whose Content-Length is above the limit of a file plus extra bytes.
func (h *Handler) checkLength(c *call, extra int64) error {
	limit := h.svc.Files.Limit()
	if c.r.ContentLength-extra > limit {
		return &formsvc.FileSizeError{Limit: limit}
	}
	return nil
}

// A source reads the body of an upload, and checks its digests. It sees the bytes as they arrived.
type source struct {
	body *gate.Body
	wait func() // called before the body is read
	want digests
	raw  bool  // whether the body is the file
	err  error // how reading ended: io.EOF, or why the body is unusable
}

func (h *Handler) newSource(c *call) *source {
	return &source{body: gate.NewBody(c.w, c.r, h.grace), wait: c.slot.Release}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.wait()
	n, err := s.body.Read(p)
	s.want.add(p[:n])
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		s.err = wire.Unreadable(err)
	default:
		if s.err = s.want.check(); s.err == nil {
			s.err = io.EOF
		}
	}
	return n, s.err
}

// fail returns the problem for a failed upload. An error in the body takes precedence over its consequences, such as
// the end of the context. If a part of the body is unread, the connection is closed rather than drained.
func (s *source) fail(ctx context.Context, err error) error {
	s.body.Finish()
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		err = s.err
	}
	p := wire.ProblemOf(ctx, err)
	if s.err == nil {
		p.HangUp = true
	}
	return p
}

// fileTag returns the ETag of a file.
func fileTag(f *formsvc.File) string { return `"` + hex.EncodeToString(f.SHA256[:]) + `"` }
