package httpx

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
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
	src := &source{body: gate.NewBody(c.w, c.r, h.grace), wait: c.slot.Release}
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
	if err := h.expect(c, src, 0); err != nil {
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
	if err := h.expect(c, src, maxFormExtra); err != nil {
		return in, err
	}
	f := newForm(src, boundary)
	return formsvc.FileInput{Content: f, Complete: f.complete}, nil
}

// expect reads which digests the body must have, and refuses one whose Content-Length is above the limit of a file plus extra bytes.
func (h *Handler) expect(c *call, src *source, extra int64) (err error) {
	src.want, err = contentDigests(c.r.Header["Content-Digest"])
	if limit := h.svc.Files.Limit(); err == nil && c.r.ContentLength-extra > limit {
		err = &formsvc.FileSizeError{Limit: limit}
	}
	return err
}

// A source reads the body of an upload, and checks its digests. It sees the bytes as they arrived.
type source struct {
	body *gate.Body
	wait func() // called before the body is read
	want digests
	raw  bool  // whether the body is the file
	err  error // how reading ended: io.EOF, or why the body is unusable
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.wait()
	var n int
	n, s.err = s.want.read(s.body, p, wire.Unreadable)
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

// Limits of a form in bytes.
const (
	maxBoundary   = 70       // RFC 2046 §5.1.1
	maxPartHeader = 16 << 10 // of a part's header with what precedes it, and of what follows the last part
	maxModulePart = 800      // 200 characters of UTF-8
	maxFormExtra  = 64 << 10 // all of the form but the file, with a margin
	formBuffer    = 64 << 10 // read at once; multipart would read 4 KiB
)

// validBoundary reports whether RFC 2046 allows the boundary.
func validBoundary(s string) bool {
	const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'()+_,-./:=? "
	return s != "" && len(s) <= maxBoundary && strings.Trim(s, characters) == "" && s[len(s)-1] != ' '
}

// A fileForm reads a file from a multipart/form-data body (RFC 7578): Read returns the bytes of the part named file,
// and complete reads the rest. It also keeps the part named module, and refuses other parts.
type fileForm struct {
	src   *source
	in    allowance
	parts *multipart.Reader
	file  *multipart.Part // nil until its part begins
	want  digests         // of the file

	name, contentType, module string
	hasModule                 bool
}

func newForm(src *source, boundary string) *fileForm {
	f := &fileForm{src: src}
	f.in.r = io.MultiReader(bufio.NewReaderSize(src, formBuffer), strings.NewReader("\r\n"))
	f.parts = multipart.NewReader(&f.in, boundary)
	return f
}

// An allowance reads at most as many bytes as are left. Without it [multipart.Reader] would buffer up to 10 MB of a
// part's header.
//
// Its end is always premature, since [multipart.Reader] takes an end within a part's header for the end of the form.
// The final boundary needs no line end, so one is added to the body; then every form ends before its bytes do.
type allowance struct {
	r    io.Reader
	left int
	over bool // whether more was needed
}

// Read implements io.Reader.
func (a *allowance) Read(p []byte) (int, error) {
	if a.left == 0 {
		a.over = true
		return 0, errAllowance
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

var errAllowance = errors.New("more than is allowed")

// Read implements io.Reader.
func (f *fileForm) Read(p []byte) (int, error) {
	for f.file == nil {
		if err := f.next(); errors.Is(err, io.EOF) {
			return 0, wire.BadRequest("file_required", "The form must have a part named file.")
		} else if err != nil {
			return 0, err
		}
	}
	f.in.left = math.MaxInt
	return f.want.read(f.file, p, f.broken)
}

// complete reads the rest of the body and adds what it says about the file to in.
func (f *fileForm) complete(in *formsvc.FileInput) error {
	var err error
	for err == nil {
		err = f.next()
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	switch _, err := io.CopyN(io.Discard, f.in.r, maxPartHeader); {
	case err == nil:
		return wire.BadRequest("trailing_data", "Too much follows the final boundary.")
	case !errors.Is(err, io.EOF):
		return f.broken(err)
	}
	in.Name, in.ContentType, in.Module = f.name, f.contentType, f.module
	return nil
}

// next reads the header of the next part, and the whole part if it isn't the file. It returns io.EOF at the final
// boundary.
func (f *fileForm) next() error {
	f.in.left = maxPartHeader
	part, err := f.parts.NextRawPart()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return f.broken(err)
	}
	lines := part.Header["Content-Disposition"]
	if len(lines) != 1 {
		return badDisposition("must be there once")
	}
	said, wrong := parseDisposition(lines[0], "form-data")
	if wrong != "" {
		return badDisposition(wrong)
	}
	if err := checkTransferEncoding(part); err != nil {
		return err
	}
	switch said["name"] {
	case "file":
		return f.setFile(part, said["filename"])
	case "module":
		return f.setModule(part)
	}
	return wire.BadRequest("unknown_part", "The form must have no parts but file and module.")
}

func badDisposition(wrong string) error {
	return wire.BadRequest("malformed_multipart", "The Content-Disposition of a part "+wrong+".")
}

// checkTransferEncoding refuses parts with a transfer encoding, which HTTP doesn't need (RFC 7578 §4.7).
func checkTransferEncoding(part *multipart.Part) error {
	for _, encoding := range part.Header["Content-Transfer-Encoding"] {
		if !slices.Contains([]string{"7bit", "8bit", "binary"}, strings.ToLower(strings.TrimSpace(encoding))) {
			return wire.BadRequest("unsupported_transfer_encoding", "Content-Transfer-Encoding must be absent or binary.")
		}
	}
	return nil
}

// setFile begins reading the part with the file.
func (f *fileForm) setFile(part *multipart.Part, name string) (err error) {
	if f.file != nil {
		return wire.BadRequest("repeated_part", "The form must have one part named file.")
	}
	f.contentType = part.Header.Get("Content-Type")
	if strings.HasPrefix(strings.ToLower(f.contentType), "multipart/") {
		return wire.BadRequest("nested_multipart", "The part named file must be one file, not a multipart body.")
	}
	if f.want, err = contentDigests(part.Header["Content-Digest"]); err != nil {
		return err
	}
	// Browsers escape these three and nothing else (the Fetch standard).
	f.name = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n").Replace(name)
	f.file = part
	return nil
}

// setModule reads the part that names the file's module.
func (f *fileForm) setModule(part *multipart.Part) error {
	if f.hasModule {
		return wire.BadRequest("repeated_part", "The form must have at most one part named module.")
	}
	f.hasModule = true
	text, err := io.ReadAll(io.LimitReader(part, maxModulePart+1))
	if err != nil {
		return f.broken(err)
	}
	if len(text) > maxModulePart {
		return &formsvc.ValidationError{Fields: []formsvc.FieldError{{
			Pointer: "/module", Code: "too_long", Detail: "must have at most 200 characters",
		}}}
	}
	f.module = string(text)
	return nil
}

// broken returns the error for a body that can't be read as a form.
func (f *fileForm) broken(err error) error {
	switch {
	case f.src.err != nil && !errors.Is(f.src.err, io.EOF):
		return f.src.err
	case f.in.over:
		return wire.BadRequest("part_header_too_large",
			"The header of a part, with what comes before it, must have at most "+strconv.Itoa(maxPartHeader)+" bytes.")
	case f.src.err != nil:
		return wire.BadRequest("multipart_incomplete", "The body ends before its final boundary.")
	}
	p := wire.BadRequest("malformed_multipart", "The body is not multipart/form-data with this boundary.")
	p.Cause = err
	return p
}
