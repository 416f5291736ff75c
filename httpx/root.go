package httpx

import (
	"errors"
	"html"
	"strings"

	"github.com/formsvc/toolkit/httpx/internal/mount"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

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
