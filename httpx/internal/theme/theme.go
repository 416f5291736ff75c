// Package theme has what pages get from a [formsvc.Theme], and the assets that they load.
package theme

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A Theme is one that is checked. It is safe for concurrent use.
type Theme struct {
	Version   string // a hash of our own assets
	Form      Style  // of all forms; none without form.css
	in        *formsvc.Theme
	layout    *template.Template // nil for none
	css, logo string             // names of the host's assets; "" for none
	assets    map[string][]byte  // by name
}

// A Frame is what a theme adds to a page, and what the blocks of a layout know. What the theme doesn't have is empty.
type Frame struct {
	Product, Logo, Stylesheet, Title string // Logo is an address, and Stylesheet one below that of the assets
	Texts                            map[string]string
	Head, Header, Footer             template.HTML
}

// New checks a theme, which must not change later. Only [Theme.Frame] finds missing blocks, and errors inside blocks. Our own
// assets are in the directory "assets".
func New(in *formsvc.Theme, own fs.FS) (*Theme, error) {
	t, sum := &Theme{in: in, assets: make(map[string][]byte)}, crc32.NewIEEE()
	files, _ := fs.Glob(own, "assets/*") // sorted
	for _, file := range files {
		b, _ := fs.ReadFile(own, file) // embedded
		_, _ = sum.Write(b)
		t.assets[strings.TrimPrefix(file, "assets/")] = b
	}
	t.Version = strconv.FormatUint(uint64(sum.Sum32()), 36)
	if css, ok := t.assets["form.css"]; ok {
		t.Form = newStyle(string(css))
	}
	t.css = t.add(in.Stylesheet, ".css")
	image := strings.HasPrefix(http.DetectContentType(in.Logo), "image/")
	if len(in.Logo) > 0 && (in.Product == "" || !image && !bytes.Contains(in.Logo, []byte("<svg"))) {
		return nil, errors.New("the Logo must be SVG, PNG, JPEG, GIF or WebP, and needs Product as its text")
	}
	t.logo = t.add(in.Logo, map[bool]string{false: ".svg"}[image])
	var err error
	if in.Layout != "" {
		t.layout, err = template.New("Layout").Option("missingkey=error").Parse(in.Layout)
	}
	return t, err
}

// add adds an asset, unless it is empty, and returns its name: a hash of its content, so that no node sends another theme's under it.
func (t *Theme) add(content []byte, suffix string) string {
	if len(content) == 0 {
		return ""
	}
	name := fmt.Sprintf("theme-%.10x%s", sha256.Sum256(content), suffix)
	t.assets[name] = content
	return name
}

// Serve sends the asset of that name, and reports whether there is one.
func (t *Theme) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	content, ok := t.assets[name]
	if ok {
		Send(w, r, name, content)
	}
	return ok
}

// Send sends an asset. Browsers keep it: its address changes with its content. That of embed.js, which other
// sites load, doesn't.
func Send(w http.ResponseWriter, r *http.Request, name string, content []byte) {
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if name == "embed.js" {
		w.Header().Set("Cache-Control", "public, max-age=3600")
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox") // of an SVG that is opened as a page
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// Texts returns the texts of a language, which are ours unless the host has others.
func (t *Theme) Texts(language string, ours map[string]string) map[string]string {
	all := make(map[string]string)
	for _, texts := range []map[string]string{t.in.Texts["en"], ours, t.in.Texts[""], t.in.Texts[language]} {
		maps.Copy(all, texts)
	}
	return all
}

// Frame returns what the theme adds to a page. Its assets are below root + "assets/".
func (t *Theme) Frame(root, title string, texts map[string]string) (f Frame, err error) {
	f = Frame{Product: t.in.Product, Stylesheet: t.css, Title: title, Texts: texts}
	if t.logo != "" {
		f.Logo = root + "assets/" + t.logo
	}
	if t.layout == nil {
		return f, nil
	}
	block := func(name string) template.HTML {
		var b strings.Builder
		err = cmp.Or(err, t.layout.ExecuteTemplate(&b, name, f))
		return template.HTML(b.String()) //nolint:gosec // the template has escaped it
	}
	f.Head, f.Header, f.Footer = block("head"), block("header"), block("footer")
	return f, err
}
