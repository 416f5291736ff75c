package httpx

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// maxRanges is how many ranges of a file one request may ask for; with more it
// gets all of it (RFC 9110 §14.2), since each costs a request to the blob store.
const maxRanges = 16

// downloadFile answers with the bytes of a file. What is asked for is worked out
// by [http.ServeContent].
func (h *Handler) downloadFile(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	f, err := h.svc.Files.Get(c.r.Context(), formsvc.FileKey{AccountID: c.who.AccountID, ID: c.ids[0]})
	if err != nil {
		return err
	}
	done, err := h.transfer(c)
	if err != nil {
		return err
	}
	defer done()
	control := http.NewResponseController(c.w)
	d := &download{
		call: c, file: &f, header: fileHeader(&f), content: newContent(c.r.Context(), h.svc.Files, &f),
		pace: pace{grace: h.grace, ahead: paceAhead, set: func(t time.Time) { _ = control.SetWriteDeadline(t) }},
	}
	defer func() { _ = d.content.close() }() // finish looks at the error; this is for panics
	http.ServeContent(d, d.request(), "", f.CreatedAt, d.content)
	return d.finish()
}

// fileHeader returns the header of an answer with a file. It keeps browsers from
// doing anything with it but saving it.
func fileHeader(f *formsvc.File) http.Header {
	return http.Header{
		"Content-Type":                 {servedType(f.ContentType)},
		"Content-Disposition":          {disposition(f.Name)},
		"Etag":                         {fileTag(f)},
		"Repr-Digest":                  {reprDigest(f)},
		"Cache-Control":                revalidate,
		"X-Content-Type-Options":       noSniff,
		"Content-Security-Policy":      {"default-src 'none'; sandbox"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
	}
}

// A download is the http.ResponseWriter for [http.ServeContent]. It holds the
// answer back until the first byte of the file is there, so that what fails
// before can still be told with a problem document.
type download struct {
	call    *call
	file    *formsvc.File
	header  http.Header // of the answer, until it begins
	status  int
	content *content
	held    []byte // what comes before the first byte: the header of a part
	pace    pace
}

// request returns the request as ServeContent is to see it, which looks at the first
// line of a header only: lists in several lines become one.
func (d *download) request() *http.Request {
	r := d.call.r.WithContext(d.call.r.Context()) // a copy
	r.Header = maps.Clone(r.Header)
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if lines := r.Header[name]; len(lines) > 1 {
			r.Header[name] = []string{strings.Join(lines, ", ")}
		}
	}
	if len(r.Header["Range"]) > 0 && !d.mayRange(r) {
		delete(r.Header, "Range")
	}
	return r
}

// mayRange reports whether the ranges are looked at. They are not with HEAD or
// another unit (RFC 9110 §14.2), nor for an empty file, nor with the empty range
// "-0" among others, which ServeContent takes.
func (d *download) mayRange(r *http.Request) bool {
	ranges, ok := strings.CutPrefix(r.Header["Range"][0], "bytes=")
	if !ok || r.Method != http.MethodGet || d.file.Size == 0 || len(r.Header["Range"]) > 1 {
		return false
	}
	list := strings.Split(ranges, ",")
	if len(list) > maxRanges {
		return false
	}
	for _, one := range list {
		if suffix, ok := strings.CutPrefix(strings.TrimSpace(one), "-"); ok && len(list) > 1 && strings.Trim(suffix, "0") == "" {
			return false
		}
	}
	return true
}

// Header implements http.ResponseWriter.
func (d *download) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *download) WriteHeader(status int) {
	d.status = status
	if status != http.StatusPartialContent || d.header.Get("Content-Range") == "" { // several ranges have theirs inside
		return
	}
	length, err := strconv.ParseInt(d.header.Get("Content-Length"), 10, 64)
	if err != nil || length == 0 { // ServeContent takes the range "-0"
		d.status = http.StatusRequestedRangeNotSatisfiable
		return
	}
	d.content.expect(length)
}

// Write implements http.ResponseWriter.
func (d *download) Write(p []byte) (int, error) {
	if d.status >= http.StatusBadRequest { // a text of ServeContent's, for which a problem document stands
		return len(p), nil
	}
	if !d.call.sent {
		if !d.content.begun() {
			d.held = append(d.held, p...)
			return len(p), nil
		}
		d.begin()
		if _, err := d.send(d.held); err != nil {
			return 0, err
		}
	}
	return d.send(p)
}

func (d *download) send(p []byte) (int, error) {
	d.pace.begin()
	n, err := d.call.w.Write(p)
	d.pace.end(n)
	return n, err
}

// begin sends the header.
func (d *download) begin() {
	header := d.call.w.Header()
	if d.status == http.StatusNotModified {
		header["Etag"], header["Cache-Control"] = d.header["Etag"], d.header["Cache-Control"]
	} else {
		maps.Copy(header, d.header)
	}
	d.call.sent = true
	d.call.w.WriteHeader(d.status)
}

// finish answers for what ServeContent can't. An error after the first byte cuts
// the answer short, see [Handler.fail]. That the client left is nobody's error.
func (d *download) finish() error {
	if err := d.content.close(); err != nil {
		return err
	}
	switch {
	case d.status == http.StatusPreconditionFailed:
		return &problem{
			status: d.status, code: "precondition_failed", detail: "The file does not meet the condition of the request.",
		}
	case d.status == http.StatusRequestedRangeNotSatisfiable:
		d.call.w.Header()["Content-Range"] = []string{"bytes */" + strconv.FormatInt(d.file.Size, 10)}
		return &problem{
			status: d.status, code: "range_not_satisfiable",
			detail: fmt.Sprintf("The file has %d bytes, and none of them is in that range.", d.file.Size),
		}
	case d.status >= http.StatusBadRequest || d.status == 0:
		return errors.New("http.ServeContent failed with status " + strconv.Itoa(d.status))
	case !d.call.sent:
		d.begin()
	}
	return nil
}
