package intake

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

// A picture is the logo or the cover of a form.
type picture struct {
	Name          string       // the last segment of its address, which changes with its content; "" for none
	Address       template.URL // on a page
	Width, Height int          // in pixels
}

// newPicture returns what pages need of a picture's content.
func newPicture(kind string, content []byte) picture {
	size, format, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil { // there is none
		return picture{}
	}
	return picture{Name: fmt.Sprintf("%s-%.10x.%s", kind, sha256.Sum256(content), format), Width: size.Width, Height: size.Height}
}

// dress gives a page the looks of its form, and tells it which pages may embed it.
func (v *visit) dress(p *page) {
	if v.campaign == nil {
		return
	}
	form := &v.campaign.Form
	look := &form.Theme
	p.Looks, p.LogoAlt = v.looks, cmp.Or(look.LogoAlt, v.campaign.Title)
	p.Logo, p.Cover = v.shown(v.logo, look.Logo), v.shown(v.cover, look.Cover)
	if !v.preview {
		p.Origins = strings.Join(form.AllowedOrigins, " ")
	}
}

// shown returns a picture with its address. That of a preview, which isn't stored, has the content.
func (v *visit) shown(p picture, content []byte) picture {
	if v.preview {
		p.Address = template.URL("data:" + http.DetectContentType(content) + ";base64," + base64.StdEncoding.EncodeToString(content)) //nolint:gosec // no text
	} else {
		p.Address = template.URL(v.root + v.token + "/" + p.Name) //nolint:gosec // letters and digits
	}
	return p
}

// picture sends the logo or the cover of a form.
func (v *visit) picture(name string) error {
	if err := v.find(); err != nil {
		return err
	}
	content := v.campaign.Form.Theme.Logo
	if name == v.cover.Name {
		content = v.campaign.Form.Theme.Cover
	} else if name != v.logo.Name {
		return formsvc.ErrNotFound
	}
	theme.Send(v.w, v.r, name, content)
	return nil
}
