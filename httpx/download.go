package httpx

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/people"
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

// downloadFile sends the bytes of a file, or the ranges of it that the request asks for.
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
	switch c.condition(fileTag(&f), f.CreatedAt) {
	case http.StatusNotModified:
		c.setHeader("Etag", fileTag(&f))
		return c.sendNotModified(revalidate)
	case http.StatusPreconditionFailed:
		return wire.Refuse(http.StatusPreconditionFailed, "precondition_failed", "The file doesn't match the condition of the request.")
	}
	parts, err := c.ranges(&f)
	if err != nil {
		c.w.Header()["Content-Range"] = []string{"bytes */" + strconv.FormatInt(f.Size, 10)}
		return err
	}
	control := http.NewResponseController(c.w)
	d := &download{
		call: c, file: &f, header: fileHeader(&f, people.Of(c.r.Context())), status: http.StatusOK,
		pace: gate.Pace{Grace: h.grace, Ahead: gate.Ahead, Set: func(t time.Time) { _ = control.SetWriteDeadline(t) }},
	}
	return d.send(d.frame(parts))
}

// fileHeader returns the headers of a reply with a file. They make browsers save it and do nothing else with it. A PDF that a page of the console
// shows is the exception: browsers have viewers for them, which run nothing of it here.
func fileHeader(f *formsvc.File, p *people.Request) http.Header {
	header := http.Header{
		"Content-Type":                 {servedType(f.ContentType)},
		"Content-Disposition":          {disposition(f.Name)},
		"Etag":                         {fileTag(f)},
		"Repr-Digest":                  {reprDigest(f)},
		"Cache-Control":                revalidate,
		"X-Content-Type-Options":       noSniff,
		"Last-Modified":                {f.CreatedAt.UTC().Format(http.TimeFormat)},
		"Accept-Ranges":                {"bytes"},
		"Content-Security-Policy":      {"default-src 'none'; sandbox"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
	}
	if p != nil && p.Inline && header.Get("Content-Type") == "application/pdf" {
		header.Set("Content-Disposition", strings.Replace(disposition(f.Name), "attachment", "inline", 1))
		header.Set("Content-Security-Policy", "frame-ancestors 'self'; form-action 'none'") // a sandbox has no viewer
	}
	return header
}

// condition returns the status that the conditions of the request ask for: 304, 412 or 200 (RFC 9110 §13.2.2).
func (c *call) condition(tag string, changed time.Time) int {
	header, changed := c.r.Header, changed.Truncate(time.Second)
	unmodified, errUnmodified := http.ParseTime(header.Get("If-Unmodified-Since"))
	modified, errModified := http.ParseTime(header.Get("If-Modified-Since"))
	match, star, _ := entityTags(header["If-Match"])
	switch {
	case len(header["If-Match"]) > 0 && !star && !slices.Contains(match, entityTag{opaque: tag[1 : len(tag)-1]}),
		len(header["If-Match"]) == 0 && errUnmodified == nil && changed.After(unmodified):
		return http.StatusPreconditionFailed
	case c.hasTag(tag), len(header["If-None-Match"]) == 0 && errModified == nil && !changed.After(modified):
		return http.StatusNotModified
	}
	return http.StatusOK
}

// mayRange reports whether a Range header counts: with GET, and if the client's copy is the file (If-Range).
func (c *call) mayRange(tag string, changed time.Time) bool {
	condition := c.r.Header.Get("If-Range")
	date, err := http.ParseTime(condition)
	return c.r.Method == http.MethodGet && len(c.r.Header["Range"]) == 1 &&
		(condition == "" || condition == tag || err == nil && date.Equal(changed.Truncate(time.Second)))
}

// A part is a range of a file in a reply.
type part struct {
	head         string // before the bytes, where there are several parts
	from, length int64
}

// contentRange returns the value of the header.
func (p *part) contentRange(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", p.from, p.from+p.length-1, size)
}

// rangeForm is one range of the header (RFC 9110 §14.1.1).
var rangeForm = regexp.MustCompile(`^([0-9]*)-([0-9]*)$`)

// ranges returns the ranges of the file that the request asks for, or none for all of it.
func (c *call) ranges(f *formsvc.File) ([]part, error) {
	list, ok := strings.CutPrefix(c.r.Header.Get("Range"), "bytes=")
	asked := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t", r) })
	if !ok || len(asked) == 0 || len(asked) > maxRanges || f.Size == 0 || !c.mayRange(fileTag(f), f.CreatedAt) {
		return nil, nil
	}
	refused := wire.Refuse(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable",
		fmt.Sprintf("The file has %d bytes, and none of them is in that range.", f.Size))
	var parts []part
	var sum int64
	for _, text := range asked {
		m := rangeForm.FindStringSubmatch(text)
		if m == nil || m[1]+m[2] == "" {
			return nil, refused
		}
		from, _ := strconv.ParseInt(m[1], 10, 64) // a number out of range becomes the largest, which is past the end
		to, _ := strconv.ParseInt(cmp.Or(m[2], strconv.FormatInt(f.Size, 10)), 10, 64)
		if m[1] == "" {
			from, to = max(f.Size-to, 0), f.Size
		}
		if to < from && m[2] != "" {
			return nil, refused
		}
		if from < f.Size {
			p := part{from: from, length: min(to, f.Size-1) - from + 1}
			parts, sum = append(parts, p), sum+p.length
		}
	}
	switch {
	case len(parts) == 0:
		return nil, refused
	case sum > f.Size:
		return nil, nil
	}
	return parts, nil
}

// A download is the reply with a file. It begins when the first byte of the file is read, so that an earlier failure still gets a
// problem document.
type download struct {
	call   *call
	file   *formsvc.File
	header http.Header // of the reply, until it begins
	status int
	held   string // the head of a part, until its first byte
	gone   bool   // whether the client disconnected
	pace   gate.Pace
}

// frame sets the headers for the parts, and returns all that is to be sent.
func (d *download) frame(parts []part) []part {
	switch len(parts) {
	case 0:
		parts = []part{{length: d.file.Size}}
	case 1:
		d.status = http.StatusPartialContent
		d.header["Content-Range"] = []string{parts[0].contentRange(d.file.Size)}
	default:
		d.status = http.StatusPartialContent
		boundary, before := rand.Text(), ""
		for i := range parts {
			parts[i].head = fmt.Sprintf("%s--%s\r\nContent-Range: %s\r\nContent-Type: %s\r\n\r\n",
				before, boundary, parts[i].contentRange(d.file.Size), d.header.Get("Content-Type"))
			before = "\r\n"
		}
		parts = append(parts, part{head: "\r\n--" + boundary + "--\r\n"})
		d.header["Content-Type"] = []string{"multipart/byteranges; boundary=" + boundary}
	}
	var size int64
	for _, p := range parts {
		size += int64(len(p.head)) + p.length
	}
	d.header["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	return parts
}

// send sends the parts. An error after the first byte cuts the reply short, see [Handler.fail]. A client that disconnects isn't an error.
func (d *download) send(parts []part) error {
	for _, p := range parts {
		d.held = p.head
		if err := d.sendPart(p); d.gone {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (d *download) sendPart(p part) error {
	if p.length == 0 || d.call.r.Method == http.MethodHead {
		_, err := d.Write(nil)
		return err
	}
	body, err := d.call.h.svc.Files.Open(d.call.r.Context(), d.file, p.from, p.length)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // all wanted bytes have been read
	_, err = io.Copy(d, body)
	return err
}

// Write sends bytes of the file, after what has to be sent before.
func (d *download) Write(b []byte) (int, error) {
	if !d.call.sent {
		maps.Copy(d.call.w.Header(), d.header)
		d.call.head(d.status)
	}
	for _, text := range [][]byte{[]byte(d.held), b} {
		if len(text) == 0 {
			continue
		}
		d.pace.Begin()
		n, err := d.call.w.Write(text)
		d.pace.End(n)
		if err != nil {
			d.gone = true
			return 0, err
		}
	}
	d.held = ""
	return len(b), nil
}

// extendedName is the parameter with an escaped name, in which encodeURIComponent of JavaScript leaves parentheses unescaped.
var extendedName = regexp.MustCompile(`(?i)filename\*\s*=[^;]*`)

// parseDisposition returns the parameters of a Content-Disposition (RFC 6266) of that kind. wrong describes the error, or is "".
func parseDisposition(header, kind string) (parameters map[string]string, wrong string) {
	header = extendedName.ReplaceAllStringFunc(header, strings.NewReplacer("(", "%28", ")", "%29").Replace)
	got, parameters, err := mime.ParseMediaType(header)
	_, named := parameters["filename"]
	switch {
	case got != kind && got != "":
		return nil, "must be " + kind
	case err != nil:
		return nil, `can't be read; write a name as filename="…", or as filename*=UTF-8'' with the name escaped as %XX`
	case !named && extendedName.MatchString(header):
		return nil, "has a filename* that is not UTF-8'' and a name escaped as %XX"
	}
	return parameters, ""
}

// disposition returns the Content-Disposition of a download (RFC 6266). It has the name twice: in ASCII for old
// clients, and unchanged.
func disposition(name string) string {
	ascii := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// servedType returns the Content-Type of a download. It is application/octet-stream unless the declared type is known to be
// harmless: a browser might run others, or render them as documents with scripts.
func servedType(declared string) string {
	mediaType, params, err := mime.ParseMediaType(declared)
	if err != nil || !harmless(mediaType) {
		return "application/octet-stream"
	}
	charset := params["charset"]
	if charset == "" || !strings.HasPrefix(mediaType, "text/") {
		return mediaType
	}
	return mime.FormatMediaType(mediaType, map[string]string{"charset": charset})
}

func harmless(mediaType string) bool {
	for _, part := range [...]string{"html", "+xml", "svg", "script"} {
		if strings.Contains(mediaType, part) {
			return false
		}
	}
	switch major, minor, _ := strings.Cut(mediaType, "/"); major {
	case "image", "audio", "video", "font":
		return true
	case "text":
		return slices.Contains([]string{"plain", "csv", "markdown", "calendar"}, minor)
	case "application":
		return strings.HasPrefix(minor, "vnd.") ||
			slices.Contains([]string{"pdf", "json", "zip", "gzip", "x-tar", "x-7z-compressed", "msword", "rtf"}, minor)
	}
	return false
}
