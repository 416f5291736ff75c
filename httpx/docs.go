package httpx

import (
	"compress/gzip"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/swaggest/swgui/v5/static"

	"github.com/formsvc/toolkit/formsvc"
)

// docs are the page of the documentation and what of the files that it uses is our
// own. The rest is Swagger UI.
//
//go:embed docs/page.html docs/docs.css docs/docs.js
var docs embed.FS

const docsPath = "/docs"

// docsPolicy lets the page load what is below it and call the API that it belongs to,
// and nothing else: no inline script, no other host, no frame around it.
const docsPolicy = "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Values of headers of the documentation.
//
//nolint:gochecknoglobals // immutable
var (
	typeHTML = []string{"text/html; charset=utf-8"}
	typeCSS  = []string{"text/css; charset=utf-8"}
	typeJS   = []string{"text/javascript; charset=utf-8"}
	typePNG  = []string{"image/png"}

	revalidatePublic = []string{"no-cache"} // for what has an ETag and is the same for everybody
)

// getDocs answers with the page of the documentation. It refers to everything by
// addresses relative to its own, so that it works under any prefix.
func (h *Handler) getDocs(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	c.setPagePolicy()
	return c.sendFile(docs, "docs/page.html", typeHTML)
}

// setPagePolicy sets what a page may load and who may load it.
func (c *call) setPagePolicy() {
	header := c.w.Header()
	header["Content-Security-Policy"] = []string{docsPolicy}
	header["Referrer-Policy"] = []string{"no-referrer"}
	header["Cross-Origin-Opener-Policy"] = []string{"same-origin"}
}

// getDocsFile answers with one of the files that the page of the documentation uses.
func (h *Handler) getDocsFile(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	switch strings.TrimPrefix(c.r.URL.Path, docsPath+"/") {
	case "":
		return c.sendToDocs()
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

// sendToDocs answers with where the page is: without a slash, since what it refers to
// is not found from anywhere else.
func (c *call) sendToDocs() error {
	header := c.w.Header()
	header["Location"] = []string{".." + docsPath}
	header["Content-Length"] = []string{"0"}
	header["Cache-Control"] = revalidatePublic
	c.sent = true
	c.w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// sendFile answers with a small file as it is.
func (c *call) sendFile(from fs.ReadFileFS, name string, mediaType []string) error {
	b, err := from.ReadFile(name)
	if err != nil {
		return err
	}
	c.out = append(c.out, b...)
	c.sendPublic(mediaType)
	return nil
}

// sendPublic answers with what is in c.out, or 304 if the client has it.
func (c *call) sendPublic(mediaType []string) {
	if c.current(contentTag(c.out)) {
		return
	}
	c.start(http.StatusOK, mediaType, revalidatePublic, len(c.out))
	c.write()
}

// sendZipped answers with a file that is kept compressed, as it is kept where the client
// takes that, and never with all of it in memory.
func (c *call) sendZipped(from fs.FS, name string, mediaType []string) error {
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	tag, size, err := gzipContent(f)
	if err != nil {
		return err
	}
	header := c.w.Header()
	header["Vary"] = []string{"Accept-Encoding"}
	zipped := takesGzip(c.r.Header["Accept-Encoding"])
	if zipped {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		tag, size = tag+"-gzip", info.Size()
	}
	if c.current(`"` + tag + `"`) {
		return nil
	}
	var content io.Reader = f
	if zipped {
		header["Content-Encoding"] = []string{"gzip"}
	} else if content, err = gzip.NewReader(f); err != nil {
		return err
	}
	c.start(http.StatusOK, mediaType, revalidatePublic, int(size))
	if c.r.Method != http.MethodHead {
		_, _ = io.CopyN(c.w, content, size) // an error means that the client is gone
	}
	return nil
}

// gzipContent returns what tells the content of a compressed file from others, and its
// length, from the end of the file (RFC 1952 §2.3.1), without reading the rest.
func gzipContent(f fs.File) (tag string, size int64, err error) {
	file, ok := f.(io.ReadSeeker)
	if !ok {
		return "", 0, errors.New("the file can't be read from its end")
	}
	var end [8]byte // the checksum and the length
	if _, err := file.Seek(-int64(len(end)), io.SeekEnd); err != nil {
		return "", 0, err
	}
	if _, err := io.ReadFull(file, end[:]); err != nil {
		return "", 0, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return hex.EncodeToString(end[:]), int64(binary.LittleEndian.Uint32(end[4:])), err
}

// current sets the ETag, and answers 304 if the client has what it names.
func (c *call) current(tag string) bool {
	c.setHeader("Etag", tag)
	if !c.hasTag(tag) {
		return false
	}
	c.w.Header()["Cache-Control"] = revalidatePublic
	c.sent = true
	c.w.WriteHeader(http.StatusNotModified)
	return true
}

// takesGzip reports whether a client with this Accept-Encoding takes gzip (RFC 9110
// §12.5.3). One that doesn't say gets files as they are.
func takesGzip(lists []string) bool {
	takes := false
	for coding := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		coding, parameters, _ := strings.Cut(coding, ";")
		q := weight(parameters)
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return q > 0
		case "*":
			takes = q > 0
		}
	}
	return takes
}
