package httpx

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// maxRanges is the limit of ranges of a file in one request. Beyond it the whole file is sent (RFC 9110 §14.2), since
// each range costs a request to the blob store.
const maxRanges = 16

func (h *Handler) listFiles(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.File], error) {
		return h.svc.Files.List(c.ctx(), c.responseKey(), q.page)
	}, func(b []byte, x *formsvc.File) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// downloadFile sends the bytes of a file. [http.ServeContent] works out ranges and conditions.
func (h *Handler) downloadFile(c *call) error {
	f, err := h.svc.Files.Get(c.r.Context(), formsvc.FileKey{AccountID: c.who.AccountID, ID: c.ids[0]})
	if err != nil {
		return err
	}
	done, err := h.transfer(c, 1)
	if err != nil {
		return err
	}
	defer done()
	c.slot.Release()
	control := http.NewResponseController(c.w)
	d := &download{
		call: c, file: &f, header: fileHeader(&f), content: newContent(c.r.Context(), h.svc.Files, &f),
		pace: gate.Pace{Grace: h.grace, Ahead: gate.Ahead, Set: func(t time.Time) { _ = control.SetWriteDeadline(t) }},
	}
	defer func() { _ = d.content.close() }() // finish checks the error; this is for panics
	http.ServeContent(d, d.request(), "", f.CreatedAt, d.content)
	return d.finish()
}

// fileHeader returns the headers of a reply with a file. They make browsers save it and do nothing else with it.
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

// A download is the http.ResponseWriter for [http.ServeContent]. It delays the reply until the first byte of the file
// is read, so that an earlier failure still gets a problem document.
type download struct {
	call    *call
	file    *formsvc.File
	header  http.Header // of the reply, until it begins
	status  int
	content *content
	held    []byte // the header of a part, held until the first byte
	pace    gate.Pace
}

// hugeNumber matches numbers that ServeContent may not be able to read. They are past the end of any file.
var hugeNumber = regexp.MustCompile(`[1-9][0-9]{18,}`)

// request returns the request for ServeContent. ServeContent reads only the first line of a header, so several lines
// are joined.
func (d *download) request() *http.Request {
	r := d.call.r.WithContext(d.call.r.Context()) // a copy
	r.Header = maps.Clone(r.Header)
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if lines := r.Header[name]; len(lines) > 1 {
			r.Header[name] = []string{strings.Join(lines, ", ")}
		}
	}
	switch ranges := r.Header["Range"]; {
	case len(ranges) == 0:
	case d.mayRange(r):
		r.Header["Range"] = []string{hugeNumber.ReplaceAllString(ranges[0], "999999999999999999")}
	default:
		delete(r.Header, "Range")
	}
	return r
}

// mayRange reports whether ranges apply. They don't with HEAD or another unit (RFC 9110 §14.2), or for an empty file.
// They also don't if the empty range "-0" is among them, since ServeContent accepts it.
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
	if status != http.StatusPartialContent || d.header.Get("Content-Range") == "" { // a reply with several ranges has theirs in its parts
		return
	}
	length, err := strconv.ParseInt(d.header.Get("Content-Length"), 10, 64)
	if err != nil || length == 0 { // ServeContent accepts the range "-0"
		d.status = http.StatusRequestedRangeNotSatisfiable
		return
	}
	d.content.length = length
}

// Write implements http.ResponseWriter.
func (d *download) Write(p []byte) (int, error) {
	if d.status >= http.StatusBadRequest { // a text of ServeContent, replaced by a problem document
		return len(p), nil
	}
	if !d.call.sent {
		if !d.content.begun.Load() {
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
	d.pace.Begin()
	n, err := d.call.w.Write(p)
	d.pace.End(n)
	return n, err
}

// begin sends the headers.
func (d *download) begin() {
	header := d.call.w.Header()
	if d.status == http.StatusNotModified {
		header["Etag"], header["Cache-Control"] = d.header["Etag"], d.header["Cache-Control"]
	} else {
		maps.Copy(header, d.header)
	}
	d.call.head(d.status)
}

// finish replies where ServeContent can't. An error after the first byte cuts the reply short, see [Handler.fail]. A
// client that disconnects isn't an error.
func (d *download) finish() error {
	if err := d.content.close(); err != nil {
		return err
	}
	switch {
	case d.status == http.StatusPreconditionFailed:
		return wire.Refuse(d.status, "precondition_failed", "The file doesn't match the condition of the request.")
	case d.status == http.StatusRequestedRangeNotSatisfiable:
		d.call.w.Header()["Content-Range"] = []string{"bytes */" + strconv.FormatInt(d.file.Size, 10)}
		return wire.Refuse(d.status, "range_not_satisfiable",
			fmt.Sprintf("The file has %d bytes, and none of them is in that range.", d.file.Size))
	case d.status >= http.StatusBadRequest || d.status == 0:
		return errors.New("http.ServeContent failed with status " + strconv.Itoa(d.status))
	case !d.call.sent:
		d.begin()
	}
	return nil
}
