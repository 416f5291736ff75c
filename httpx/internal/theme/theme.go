// Package theme prepares a [formsvc.Theme] for pages.
package theme

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/template/parse"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// A Theme is one that is checked. It is safe for concurrent use.
type Theme struct {
	texts     map[string]map[string]string
	product   string
	layout    *template.Template
	css, logo string           // names of the assets; "" for none
	assets    map[string]asset // by name
}

// An asset is a file that pages load.
type asset struct {
	mediaType string
	content   []byte
}

// A Page is what the blocks of a layout know.
type Page struct {
	Product, Logo, Title, Language, Direction string
	Texts                                     map[string]string
}

// A Frame is what a theme adds to a page. Anything is empty if the theme has none.
type Frame struct {
	Product, Logo, Stylesheet string // a name, and addresses
	Head, Header, Footer      template.HTML
}

// blocks are those that a layout may define.
const blocks = "head header footer"

// New checks a theme. Blocks are checked by [Theme.Frame], too.
func New(in *formsvc.Theme) (*Theme, error) {
	t := &Theme{texts: in.Texts, product: in.Product, assets: map[string]asset{}, layout: template.New("").Option("missingkey=error")}
	if strings.ContainsFunc(in.Product, unicode.IsControl) || !utf8.ValidString(in.Product) {
		return nil, errors.New("Product has control characters or isn't UTF-8")
	}
	if len(in.Stylesheet) > 0 {
		if !utf8.Valid(in.Stylesheet) {
			return nil, errors.New("Stylesheet isn't UTF-8")
		}
		t.css = t.add(".css", "text/css; charset=utf-8", in.Stylesheet)
	}
	if len(in.Logo) > 0 {
		mediaType := imageType(in.Logo)
		if mediaType == "" {
			return nil, errors.New("Logo is no SVG, PNG, JPEG, GIF or WebP")
		}
		if in.Product == "" {
			return nil, errors.New("Logo needs Product, which is its text")
		}
		t.logo = t.add("", mediaType, in.Logo)
	}
	if _, err := t.layout.Parse(in.Layout); err != nil {
		return nil, fmt.Errorf("Layout: %w", err)
	}
	defined := 0
	for _, b := range t.layout.Templates() {
		switch {
		case b.Tree == nil:
		case b.Name() == "" && !parse.IsEmptyTree(b.Tree.Root):
			return nil, errors.New("Layout has text outside of its blocks")
		case b.Name() == "":
		case !slices.Contains(strings.Fields(blocks), b.Name()):
			return nil, fmt.Errorf("Layout defines %q, which is none of its blocks %s", b.Name(), blocks)
		default:
			defined++
		}
	}
	if in.Layout != "" && defined == 0 {
		return nil, fmt.Errorf("Layout defines none of its blocks %s", blocks)
	}
	return t, nil
}

// add adds an asset, and returns its name: a hash of its content, so that no node sends another theme's under it.
func (t *Theme) add(suffix, mediaType string, content []byte) string {
	sum := sha256.Sum256(content)
	name := "theme-" + hex.EncodeToString(sum[:10]) + suffix
	t.assets[name] = asset{mediaType, slices.Clone(content)}
	return name
}

// imageType returns the media type of an image, or "".
func imageType(b []byte) string {
	if text := bytes.TrimLeft(b, "\ufeff \t\r\n"); bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text[:min(len(text), 4096)], []byte("<svg")) {
		return "image/svg+xml"
	}
	if mediaType := http.DetectContentType(b); strings.HasPrefix(mediaType, "image/") {
		return mediaType
	}
	return ""
}

// Serve sends the asset of that name, and reports whether there is one.
func (t *Theme) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	a, ok := t.assets[name]
	if ok {
		header := w.Header()
		header.Set("Cache-Control", "public, max-age=31536000, immutable")                              // the name changes with the content
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox") // an SVG may be opened as a page
		header.Set("Content-Type", a.mediaType)
		header.Set("X-Content-Type-Options", "nosniff")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
	}
	return ok
}

// Texts returns the texts of a language, which are ours unless the host has others.
func (t *Theme) Texts(language string, ours map[string]string) map[string]string {
	all := make(map[string]string)
	for _, texts := range []map[string]string{t.texts["en"], ours, t.texts[""], t.texts[language]} {
		maps.Copy(all, texts)
	}
	return all
}

// Frame returns what the theme adds to a page. Its assets are below root + "assets/".
func (t *Theme) Frame(root string, p Page) (Frame, error) {
	f := Frame{Product: t.product}
	if t.css != "" {
		f.Stylesheet = root + "assets/" + t.css
	}
	if t.logo != "" {
		f.Logo = root + "assets/" + t.logo
	}
	p.Product, p.Logo = f.Product, f.Logo
	for name, to := range map[string]*template.HTML{"head": &f.Head, "header": &f.Header, "footer": &f.Footer} {
		var b strings.Builder
		if t.layout.Lookup(name) == nil {
			continue
		}
		if err := t.layout.ExecuteTemplate(&b, name, p); err != nil {
			return Frame{}, fmt.Errorf("Layout: %w", err)
		}
		*to = template.HTML(b.String()) //nolint:gosec // the template has escaped it
	}
	return f, nil
}
