package httpx

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"html"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"github.com/swaggest/swgui/v5/static"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// docs has the page of the root, the documentation page, and our own files that they use. The rest is Swagger UI.
//
//go:embed docs/root.html docs/page.html docs/docs.css docs/docs.js
var docs embed.FS

const docsPath = "/docs"

// docsPolicy lets the page load files below its own path and call its own API. It forbids inline scripts, other hosts
// and frames.
const docsPolicy = "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Constant header values of the documentation.
//
//nolint:gochecknoglobals // immutable
var (
	typeHTML = []string{"text/html; charset=utf-8"}
	typeCSS  = []string{"text/css; charset=utf-8"}
	typeJS   = []string{"text/javascript; charset=utf-8"}
	typePNG  = []string{"image/png"}

	revalidatePublic = []string{"no-cache"} // for public replies with an ETag
)

// getDocs serves the documentation page. The page uses relative addresses, so that it works under any prefix.
func (h *Handler) getDocs(c *call) error {
	c.setPagePolicy()
	return c.sendFile(docs, "docs/page.html", typeHTML)
}

// setPagePolicy sets the policies on what a page may load and which sites may embed it.
func (c *call) setPagePolicy() {
	header := c.w.Header()
	header["Content-Security-Policy"] = []string{docsPolicy}
	header["Referrer-Policy"] = []string{"no-referrer"}
	header["Cross-Origin-Opener-Policy"] = []string{"same-origin"}
}

// getDocsFile serves one of the files that the documentation page uses.
func (h *Handler) getDocsFile(c *call) error {
	switch c.r.PathValue("name") {
	case "": // the page's relative addresses work at its path without a slash only
		header := c.w.Header()
		header["Location"] = []string{".." + docsPath}
		header["Content-Length"] = []string{"0"}
		header["Cache-Control"] = revalidatePublic
		c.head(http.StatusPermanentRedirect)
		return nil
	case "docs.css":
		return c.sendFile(docs, "docs/docs.css", typeCSS)
	case "docs.js":
		return c.sendFile(docs, "docs/docs.js", typeJS)
	case "favicon.png":
		return c.sendFile(static.FS, "favicon-32x32.png", typePNG)
	case "swagger-ui.css":
		return c.sendZipped(static.FS, "swagger-ui.css.gz", typeCSS)
	case "swagger-ui.js":
		return c.sendZipped(static.FS, "swagger-ui-bundle.js.gz", typeJS)
	}
	return formsvc.ErrNotFound
}

// sendFile sends a small file unchanged.
func (c *call) sendFile(from fs.ReadFileFS, name string, mediaType []string) error {
	b, err := from.ReadFile(name)
	if err != nil {
		return err
	}
	c.out = append(c.out, b...)
	return c.sendPublic(mediaType)
}

// sendPublic sends c.out, or 304 if the client has it.
func (c *call) sendPublic(mediaType []string) error {
	tag := contentTag(c.out)
	c.setHeader("Etag", tag)
	if c.hasTag(tag) {
		return c.sendNotModified(revalidatePublic)
	}
	c.start(http.StatusOK, mediaType, revalidatePublic, len(c.out))
	c.write()
	return nil
}

// sendZipped sends a file that is stored compressed: as it is if the client accepts gzip, and expanded otherwise. It
// never has the whole file in memory.
func (c *call) sendZipped(from fs.FS, name string, mediaType []string) error {
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	tag, zippedSize, size, err := gzipContent(f)
	if err != nil {
		return err
	}
	header := c.w.Header()
	header["Vary"] = []string{"Accept-Encoding"}
	zipped := gzipAccepted.MatchString(strings.Join(c.r.Header["Accept-Encoding"], ","))
	if zipped {
		tag, size = tag+"-gzip", zippedSize
	}
	tag = `"` + tag + `"`
	c.setHeader("Etag", tag)
	if c.hasTag(tag) {
		return c.sendNotModified(revalidatePublic)
	}
	var content io.Reader = f
	if zipped {
		header["Content-Encoding"] = []string{"gzip"}
	} else if content, err = gzip.NewReader(f); err != nil {
		return err
	}
	c.start(http.StatusOK, mediaType, revalidatePublic, int(size))
	if c.r.Method != http.MethodHead {
		_, _ = io.CopyN(c.w, content, size) // on an error the client has disconnected
	}
	return nil
}

// gzipAccepted matches an Accept-Encoding that names gzip with a weight above 0 (RFC 9110 §12.5.3).
var gzipAccepted = regexp.MustCompile(`(?i)(?:^|,)\s*(?:x-)?gzip\s*(?:$|,|;\s*q\s*=\s*(?:1|0?\.\d*[1-9]))`)

// gzipContent returns an ETag for the content of a compressed file, the length of the file, and that of the content. It reads only the
// end of the file (RFC 1952 §2.3.1).
func gzipContent(f fs.File) (tag string, zipped, size int64, err error) {
	file, ok := f.(io.ReaderAt)
	info, err := f.Stat()
	if err != nil || !ok {
		return "", 0, 0, cmp.Or(err, errors.New("the file can't be read from its end"))
	}
	var end [8]byte // the checksum and the length
	_, err = file.ReadAt(end[:], info.Size()-int64(len(end)))
	return hex.EncodeToString(end[:]), info.Size(), int64(binary.LittleEndian.Uint32(end[4:])), err
}

const openAPIPath = "/openapi.json"

// openAPI is openapi.yaml as JSON.
//
//go:generate go test -run ^TestOpenAPIJSON$ -update .
//go:embed openapi.json
var openAPI string

// openAPIServer is the server's address in the document: it occurs once, and stands for the root of a host.
const openAPIServer = `"url": "/"`

// openAPIExample is the server's address in the document's example requests.
const openAPIExample = "http://127.0.0.1:8080"

// getOpenAPI serves the OpenAPI document, with the address that clients are to use.
func (h *Handler) getOpenAPI(c *call) error {
	address := h.address(c, "")
	example := wire.AppendString(nil, cmp.Or(h.baseURL, openAPIExample+address))
	b := bytes.NewBuffer(c.out)
	_, _ = strings.NewReplacer(
		openAPIServer, `"url": `+string(wire.AppendString(nil, cmp.Or(address, "/"))),
		openAPIExample, string(example[1:len(example)-1]),
	).WriteString(b, openAPI) // a buffer takes everything
	c.out = b.Bytes()
	return c.sendRecord(contentTag(c.out))
}

// A Link is an address that GET / lists. See [Options.Links].
type Link struct {
	Title string // for example "Console"
	Path  string // relative to where the Handler is mounted, for example "/console"
}

// rootTitle and rootAbout describe the service in the reply to GET /.
const (
	rootTitle = "Forms Campaign Service"
	rootAbout = "An API for form campaigns and the responses submitted to them."
)

// checkLinks returns all links of the root: those to the documentation, then the further ones.
func checkLinks(further []Link) ([]Link, error) {
	list := []Link{{"Documentation", docsPath}, {"OpenAPI description", openAPIPath}}
	for _, l := range further {
		if l.Title == "" || !strings.HasPrefix(l.Path, "/") || strings.HasPrefix(l.Path, "//") {
			return nil, errors.New("httpx: options: Links must have a title, and a path that begins with one slash")
		}
	}
	return append(list, further...), nil
}

// getRoot lists the addresses of everything else: as a page for browsers, and as JSON for other clients.
func (h *Handler) getRoot(c *call) error {
	c.setPagePolicy()
	c.w.Header()["Vary"] = []string{"Accept"}
	mediaType := typeJSON
	if strings.Contains(c.r.Header.Get("Accept"), "text/html") { // as browsers do
		mediaType = typeHTML
		if err := c.appendRootPage(h.links); err != nil {
			return err
		}
	} else {
		root := rootReply{Title: rootTitle, Description: rootAbout}
		for _, l := range h.links {
			root.Links = append(root.Links, rootLink{l.Title, h.address(c, l.Path)})
		}
		c.out = wire.AppendReply(c.out, root)
	}
	return c.sendPublic(mediaType)
}

// A rootReply is the document. Its addresses are as in Location.
type rootReply struct {
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Links       []rootLink `json:"links"`
}

type rootLink struct {
	Title string `json:"title"`
	Href  string `json:"href"`
}

// appendRootPage appends the page. Like the documentation page, it uses relative addresses, so that it works behind
// proxies that change paths. Only if it was requested without a slash at the end, the addresses begin with the whole
// path.
func (c *call) appendRootPage(links []Link) error {
	prefix := "./" // so that nothing after it is read as a scheme
	if path, _, _ := strings.Cut(c.r.RequestURI, "?"); !strings.HasSuffix(path, "/") {
		prefix = html.EscapeString(mount.Prefix(c.r)) + "/"
	}
	var list strings.Builder
	for _, l := range links {
		list.WriteString(`<li><a href="` + prefix + html.EscapeString(l.Path[1:]) + `">` + html.EscapeString(l.Title) + "</a></li>\n")
	}
	page, err := docs.ReadFile("docs/root.html")
	text := strings.NewReplacer("{title}", rootTitle, "{about}", rootAbout, "{prefix}", prefix, "{links}", list.String())
	c.out = append(c.out, text.Replace(string(page))...)
	return err
}
