package console

import (
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	qr "github.com/piglig/go-qr"

	"github.com/formsvc/toolkit/formsvc"
)

// A sharePage shows how to reach the form of a campaign, and has its settings.
type sharePage struct {
	FormURL  string // "" unless the form is enabled
	Guessed  bool   // whether the address is that which the browser requested
	Form     formsvc.Form
	Snippets snippets
	Site     string     // as typed
	Stale    bool       // whether somebody else changed the campaign
	Fields   []fillable // that the address can fill in
	Previews bool
	Made     map[string]string // the logo and the cover in base64, if they aren't saved yet
}

// share shows the address of a campaign's form and its settings.
func (v *visit) share() error { return v.showShare(http.StatusOK, sharePage{Form: v.campaign.Form}) }

func (v *visit) showShare(status int, p sharePage) (err error) {
	p.Fields, p.Previews = fillables(&v.campaign), v.h.opts.Preview != nil
	p.Guessed, p.Stale = v.h.baseURL == nil && v.h.formsURL.Host == "", status == http.StatusConflict
	if v.campaign.Form.Enabled {
		p.FormURL = v.public(v.h.formsURL) + "/" + v.campaign.FormToken
		if p.Snippets, err = v.snippets(p.FormURL); err != nil {
			return err
		}
	}
	return v.show(status, "share", "Share "+v.campaign.Title, p)
}

// saveShare publishes the form, or changes its settings.
func (v *visit) saveShare() error {
	form := v.campaign.Form // with what other pages set
	form.Enabled, form.Description = v.field("enabled") != "", textAsStored(v.field("description"), form.Description)
	form.SuccessMessage = textAsStored(v.field("successMessage"), form.SuccessMessage)
	form.RedirectURL, form.AllowedOrigins, form.Language = v.field("redirectUrl"), lines(v.r.PostForm.Get("origins")), v.field("language")
	v.readWords(&form)
	for i, site := range form.AllowedOrigins {
		form.AllowedOrigins[i] = originOf(site)
	}
	return v.saveForm(&form, v.path("/share"), "form-saved", func(status int) error { return v.showShare(status, sharePage{Form: form}) })
}

// saveForm changes the form of the campaign, and leads to a page with a note. show shows the form again: with 422 if it has errors, or with
// 409 if somebody else changed the campaign, which is read again.
func (v *visit) saveForm(form *formsvc.Form, path, note string, show func(status int) error) error {
	err := v.change(v.version(), func(in *formsvc.CampaignInput) { in.Form = *form })
	if errors.Is(err, formsvc.ErrStale) {
		if v.campaign, err = v.svc.Campaigns.Get(v.ctx(), v.campaign.Key()); err != nil {
			return err
		}
		return show(http.StatusConflict)
	}
	if v.invalid(err) {
		v.campaign.Version = v.version()
		return show(http.StatusUnprocessableEntity)
	}
	return v.done(err, path, note)
}

// allowSite adds a site that may embed the form.
func (v *visit) allowSite() error {
	site := v.field("site")
	err := v.change(v.campaign.Version, func(in *formsvc.CampaignInput) {
		if origin := originOf(site); !slices.Contains(in.Form.AllowedOrigins, origin) {
			in.Form.AllowedOrigins = append(slices.Clone(in.Form.AllowedOrigins), origin)
		}
	})
	if v.invalid(err) {
		v.wrong = map[string]string{"site": v.wrong["form.allowedOrigins"]}
		return v.showShare(http.StatusUnprocessableEntity, sharePage{Form: v.campaign.Form, Site: site})
	}
	return v.done(err, v.path("/share"), "site-allowed")
}

// originOf returns the origin of an address as a browser shows it. It returns other texts unchanged.
func originOf(text string) string {
	address := text
	if !strings.Contains(text, "://") && strings.Contains(text, ".") {
		address = "https://" + text
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return text
	}
	return u.Scheme + "://" + u.Host
}

// version returns the version of the record that the form was shown with. It returns -1, which no record has, for none.
func (v *visit) version() int64 {
	n, err := strconv.ParseInt(v.field("version"), 10, 64)
	if err != nil || n < 1 {
		return -1
	}
	return n
}

// change changes the campaign, if it has that version.
func (v *visit) change(version int64, change func(*formsvc.CampaignInput)) error {
	in := v.campaign.CampaignInput
	change(&in)
	in.IfVersion = version
	_, err := v.svc.Campaigns.Replace(v.ctx(), v.campaign.Key(), in)
	return err
}

// rotateForm gives the form another address, unless somebody else did since the page was shown.
func (v *visit) rotateForm() error {
	if v.version() != v.campaign.Version {
		return formsvc.ErrStale
	}
	_, err := v.svc.Campaigns.RotateForm(v.ctx(), v.campaign.Key())
	return v.done(err, v.path("/share"), "form-rotated")
}

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
	show := func(status int) error {
		shown := v.campaign.Form
		shown.Theme = form.Theme
		return v.showShare(status, sharePage{Form: shown, Made: made})
	}
	if err != nil {
		return err
	} else if len(v.wrong) > 0 {
		v.campaign.Version = v.version()
		return show(http.StatusUnprocessableEntity)
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

// readWords reads the owner's words on the form's page, and what its address may fill in, if they were sent.
func (v *visit) readWords(form *formsvc.Form) {
	if t := &form.Texts; v.r.PostForm.Has("button") {
		t.Button, t.ThanksTitle = asStored(v.field("button"), t.Button), asStored(v.field("thanksTitle"), t.ThanksTitle)
		t.Closed, t.Full = textAsStored(v.field("closed"), t.Closed), textAsStored(v.field("full"), t.Full)
	}
	if v.r.PostForm.Has("prefills") {
		gone := func(name string) bool {
			return !slices.ContainsFunc(fillables(&v.campaign), func(f fillable) bool { return f.Name == name })
		}
		form.Prefill = slices.DeleteFunc(inOrder(v.r.PostForm["prefill"], form.Prefill), gone)
	}
}

// A fillable is a field that the form's address may fill in.
type fillable struct {
	Name, Label string
	Query       string // the name as addresses have it
}

// fillables returns the user's fields and the questions that the address of a form may fill in.
func fillables(c *formsvc.Campaign) (list []fillable) {
	for _, user := range []fillable{{"email", "E-mail address", "email"}, {"firstName", "First name", "firstName"}, {"lastName", "Last name", "lastName"}} {
		if named(c.Modules, user.Name) == nil {
			list = append(list, user)
		}
	}
	for _, m := range c.Modules {
		if m.Prefills() {
			list = append(list, fillable{m.Name, short(80, cmp.Or(m.Label, m.Name)), url.QueryEscape(m.Name)})
		}
	}
	return list
}

// Fills reports whether the form's address may fill in a field.
func (p sharePage) Fills(name string) bool { return slices.Contains(p.Form.Prefill, name) }

// followPrefill takes over the new names of questions into what the form's address may fill in, and leaves out those that can't be filled in
// any more. A question that is hidden now can be filled in.
func (f *campaignForm) followPrefill(stored []formsvc.Module) {
	var list []string
	for _, name := range f.Form.Prefill {
		if i := slices.Index(f.stored, name); i >= 0 && i < len(f.Modules) {
			name = f.Modules[i].Name
		}
		if slices.ContainsFunc(fillables(&formsvc.Campaign{CampaignInput: f.CampaignInput}), func(x fillable) bool { return x.Name == name }) {
			list = append(list, name)
		}
	}
	for i := range f.Modules {
		m := &f.Modules[i]
		before := named(stored, f.stored[i])
		if m.Hidden && m.Name != "" && m.Prefills() && (before == nil || !before.Hidden) && !slices.Contains(list, m.Name) {
			list = append(list, m.Name)
		}
	}
	f.Form.Prefill = list
}
