package intake

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

// dress gives a page the looks of its form, and tells it which pages may embed it.
func (v *visit) dress(p *page) {
	if v.campaign == nil {
		return
	}
	form := &v.campaign.Form
	p.Looks, p.LogoAlt = theme.Looks(&form.Theme), cmp.Or(form.Theme.LogoAlt, v.campaign.Title)
	if name := logoName(form.Theme.Logo); name != "" && v.preview { // isn't stored yet
		p.Logo = template.URL("data:" + http.DetectContentType(form.Theme.Logo) + ";base64," + base64.StdEncoding.EncodeToString(form.Theme.Logo)) //nolint:gosec // no text
	} else if name != "" {
		p.Logo = template.URL(v.root + v.token + "/" + name) //nolint:gosec // letters and digits
	}
	if !v.preview {
		p.Origins = strings.Join(form.AllowedOrigins, " ")
	}
}

// logoName returns the last segment of the address of a form's logo, which changes with its content; "" for none.
func logoName(logo []byte) string {
	if len(logo) == 0 {
		return ""
	}
	return fmt.Sprintf("logo-%.10x.%s", sha256.Sum256(logo), strings.TrimPrefix(http.DetectContentType(logo), "image/"))
}

// logo sends the logo of a form.
func (v *visit) logo(name string) error {
	if err := v.find(); err != nil {
		return err
	}
	if name != logoName(v.campaign.Form.Theme.Logo) {
		return formsvc.ErrNotFound
	}
	theme.Send(v.w, v.r, name, v.campaign.Form.Theme.Logo)
	return nil
}

// looks sends the stylesheet of that name, and reports whether it is one.
func (h *Handler) looks(w http.ResponseWriter, r *http.Request, name string) bool {
	ours, _ := assets.ReadFile("assets/form.css") // embedded
	return theme.ServeLooks(w, r, ours, name)
}
