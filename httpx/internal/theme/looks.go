package theme

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// legible is the least contrast of texts (WCAG 2.2 §1.4.3).
const legible = 4.5

// A Style is CSS inside a page, and the source that allows it in the page's policy.
type Style struct {
	CSS    template.CSS // "" for none
	Source string
	Asset  string // the same as a stylesheet, for a page under another's policy; "" for none
}

// spaces are those of CSS that nobody needs.
var spaces = regexp.MustCompile(`/\*[^*]*\*/|\n\s*`)

func newStyle(css string) Style {
	css = spaces.ReplaceAllLiteralString(css, "")
	sum := sha256.Sum256([]byte(css))
	return Style{CSS: template.CSS(css), Source: " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"} //nolint:gosec // the host's code, and checked looks
}

// Looks returns the style with the looks of a form, which comes after that of all forms.
func (t *Theme) Looks(in *formsvc.FormTheme) Style {
	if in.Accent == "" && in.Scheme == "" && in.Width == "" {
		return Style{}
	}
	s := newStyle(stylesheet(string(t.assets["form.css"]), in))
	s.Asset = "looks-" + strings.TrimPrefix(in.Accent, "#") + "-" + in.Scheme + "-" + in.Width + ".css"
	return s
}

// ServeLooks sends the [Style] whose Asset has that name, and reports whether there is one. Nothing of it is kept.
func (t *Theme) ServeLooks(w http.ResponseWriter, r *http.Request, name string) bool {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "looks-"), ".css"), "-")
	if len(parts) != 3 {
		return false
	}
	in := formsvc.FormTheme{Scheme: parts[1], Width: parts[2]}
	if parts[0] != "" {
		in.Accent = "#" + parts[0]
	}
	s := t.Looks(&in)
	if in.Check() != nil || s.Asset != name || strings.ToLower(name) != name {
		return false
	}
	Send(w, r, name, []byte(s.CSS))
	return true
}

// stylesheet returns the looks of a form in CSS. ours begins with the colours on light and on dark pages, in two blocks. A host's
// stylesheet comes after it, so that it can change these, but not what has more weight: the owner's choices.
func stylesheet(ours string, in *formsvc.FormTheme) string {
	_, rest, _ := strings.Cut(ours, ":root {")
	light, rest, _ := strings.Cut(rest, "}")
	_, rest, _ = strings.Cut(rest, ":root {")
	dark, _, _ := strings.Cut(rest, "}")
	var b strings.Builder
	switch in.Scheme {
	case "light":
		fmt.Fprintf(&b, ":root{%s}\n:root:root{color-scheme:light}\n", light)
	case "dark":
		fmt.Fprintf(&b, "@media screen{:root{%s}:root:root{color-scheme:dark}}\n", dark) // paper is white
	}
	if accent, ok := parseColor(in.Accent); ok {
		on := color{}
		if white := (color{255, 255, 255}); contrast(accent, white) > contrast(accent, on) {
			on = white
		}
		fmt.Fprintf(&b, ":root:root{--accent:%s;--on-accent:%s}\n", accent, on)
		if in.Scheme != "dark" {
			fmt.Fprintf(&b, ":root:root{--link:%s}\n", legibleOn(light, accent))
		}
		if media := map[string]string{"": "screen and (prefers-color-scheme:dark)", "dark": "screen"}[in.Scheme]; media != "" {
			fmt.Fprintf(&b, "@media %s{:root:root{--link:%s}}\n", media, legibleOn(dark, accent))
		}
		b.WriteString(":root:root{--focus:var(--link)}\nmain button{border-color:var(--link)}\nmain button:is(.back,.more){color:var(--link)}\nmain .option input{accent-color:var(--link)}\n")
	}
	if width := map[string]string{"narrow": "30rem", "wide": "56rem"}[in.Width]; width != "" {
		fmt.Fprintf(&b, "@media screen{html body{max-width:%s}}\n", width)
	}
	return b.String()
}

// A color has its red, green and blue.
type color [3]uint8

// String returns it as CSS has it.
func (c color) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// parseColor reads a color such as #1557a8 or #fff.
func parseColor(s string) (c color, ok bool) {
	hex, ok := strings.CutPrefix(s, "#")
	if len(hex) == 3 {
		hex = strings.Join([]string{hex[:1], hex[:1], hex[1:2], hex[1:2], hex[2:], hex[2:]}, "")
	}
	n, err := strconv.ParseUint(hex, 16, 24)
	return color{uint8(n >> 16), uint8(n >> 8), uint8(n)}, ok && err == nil && len(hex) == 6 //nolint:gosec // bytes
}

// luminance returns the relative luminance (WCAG 2.2).
func (c color) luminance() float64 {
	var sum float64
	for i, weight := range [3]float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// contrast returns the contrast of two colors, from 1 to 21.
func contrast(a, b color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// legibleOn returns the color, mixed with so little black or white that it is legible on the --background of a block of CSS.
func legibleOn(block string, c color) color {
	_, value, _ := strings.Cut(block, "--background:")
	value, _, _ = strings.Cut(value, ";")
	background, _ := parseColor(strings.TrimSpace(value))
	end := color{}
	if contrast(background, end) < legible {
		end = color{255, 255, 255}
	}
	mixed := c
	for step := 1; step <= 100 && contrast(mixed, background) < legible; step++ {
		for i := range mixed {
			mixed[i] = uint8((int(c[i])*(100-step) + int(end[i])*step) / 100) //nolint:gosec // between bytes
		}
	}
	return mixed
}
