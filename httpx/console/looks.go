package console

import (
	"cmp"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"

	qr "github.com/piglig/go-qr"

	"github.com/formsvc/toolkit/formsvc"
)

// looksPattern is the page that takes a logo and a cover, so its form may be larger than maxForm.
const (
	looksPattern = "POST /campaigns/{campaign}/looks"
	maxLooks     = 2*formsvc.MaxPicture + 256<<10 // bytes
)

// plainAccent is what a field for a color has if the form has none of its own. Such a field can't be empty.
const plainAccent = "#1557a8"

// saveLooks changes how the form looks, or previews that.
func (v *visit) saveLooks() error {
	form := v.campaign.Form
	made, err := v.readLooks(&form.Theme)
	show := func(status int, version int64) error {
		shown := v.campaign.Form
		shown.Theme = form.Theme
		return v.showShare(status, sharePage{Form: shown, Version: version, Stale: status == http.StatusConflict, Made: made})
	}
	if err != nil {
		return err
	} else if len(v.wrong) > 0 {
		return show(http.StatusUnprocessableEntity, v.version())
	}
	if v.field("do") == "preview" && v.h.opts.Preview != nil {
		f := v.formOf(&v.campaign)
		f.Form = form
		return v.preview(&f)
	}
	return v.saveForm(&form, v.path("/share"), "form-saved", show)
}

// readLooks reads the looks of the form, and notes what is wrong with its pictures. made are new ones for hidden fields, so that they are
// chosen once even if the page is shown again.
func (v *visit) readLooks(look *formsvc.FormTheme) (made map[string]string, err error) {
	if accent := strings.ToLower(v.field("accent")); accent != plainAccent || look.Accent != "" {
		look.Accent = accent
	}
	if v.field("plain") != "" {
		look.Accent = ""
	}
	look.Scheme, look.Width, look.LogoAlt, made = v.field("scheme"), v.field("width"), v.field("logoAlt"), make(map[string]string)
	for name, picture := range map[string]*[]byte{"logo": &look.Logo, "cover": &look.Cover} {
		if made[name], err = v.readPicture(name, picture); err != nil {
			break
		}
	}
	return made, err
}

// readPicture reads a picture of the form.
func (v *visit) readPicture(name string, picture *[]byte) (made string, err error) {
	made = v.field(name + "Made")
	file, _, missing := v.r.FormFile(name)
	switch {
	case missing == nil:
		content, err := io.ReadAll(file)
		if err == nil {
			content, err = v.svc.Campaigns.Picture(v.ctx(), name, content)
		}
		if wrong := v.wrong; v.invalid(err) {
			maps.Copy(v.wrong, wrong)
			return made, nil
		} else if err != nil {
			return "", err
		}
		*picture, made = content, base64.StdEncoding.EncodeToString(content)
	case v.field(name+"None") != "":
		*picture, made = nil, ""
	case made != "":
		*picture, _ = base64.StdEncoding.DecodeString(made) // the service refuses what isn't a picture
	}
	return made, nil
}

// Accent returns the color of the form, or of forms without one of their own.
func (p sharePage) Accent() string { return cmp.Or(p.Form.Theme.Accent, plainAccent) }

// qrCode sends the address of the form as a QR code, with the margin of four modules that readers need.
func (v *visit) qrCode() error {
	if !v.campaign.Form.Enabled {
		return formsvc.ErrNotFound
	}
	code, err := qr.EncodeText(v.public(v.h.formsURL)+"/"+v.campaign.FormToken, qr.Medium)
	if err != nil {
		return err
	}
	const module = 8 // of the picture's units
	svg, err := code.ToSVGBytes(qr.NewQrCodeImgConfig(module, 4*module, qr.WithOptimalSVG()))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = v.w.Write(svg) // the visitor may have left
	return nil
}
